"""The provenance of a run: the machine, and the versions of the programs that made it."""

import os
import platform
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from testbed import __version__
from testbed.topology.model import CongestionControl, Topology


def machine_facts() -> dict[str, Any]:
    """For the manifest: enough to judge numbers from another machine."""
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "load_average": os.getloadavg()[0],
        "tcp_congestion_control": congestion_control(),
    }


@dataclass(frozen=True, slots=True)
class TcpChoice:
    """The congestion control of a run's connections, and why."""

    name: str
    reason: str


AS_THE_FILE_SAYS = "as the file says"
_SETTINGS = Path("/proc/sys/net/ipv4")


def congestion_control(settings: Path = _SETTINGS) -> str:
    """The TCP congestion control of this machine and of new network namespaces: cubic, bbr, ...; or `unknown`."""
    try:
        return (settings / "tcp_congestion_control").read_text().strip()
    except OSError:
        return "unknown"


def offered_congestion_controls(settings: Path = _SETTINGS) -> tuple[str, ...]:
    """All that the kernel has, in any namespace; none if it does not say."""
    try:
        return tuple((settings / "tcp_available_congestion_control").read_text().split())
    except OSError:
        return ()


def tcp_of_lab(topology: Topology, settings: Path = _SETTINGS) -> TcpChoice:
    """What the nodes of a real lab use."""
    if topology.tcp is not None:
        return TcpChoice(topology.tcp, AS_THE_FILE_SAYS)
    if not topology.here:
        return TcpChoice("unknown", "the default of each board's kernel")
    boards = "; nodes on boards use that of their board" if topology.has_boards else ""
    return TcpChoice(congestion_control(settings), f"the default of this machine's kernel{boards}")


def tcp_of_simulation(topology: Topology, settings: Path = _SETTINGS) -> TcpChoice:
    """What simulated nodes use: the file's, else what a lab on this machine would use, else Cubic."""
    if topology.tcp is not None:
        return TcpChoice(topology.tcp, AS_THE_FILE_SAYS)
    own = congestion_control(settings)
    if own in tuple(CongestionControl):
        return TcpChoice(own, "the default of this machine's kernel")
    return TcpChoice(
        CongestionControl.CUBIC, f"the default of this machine's kernel, {own}, is not simulated"
    )


def cpu_model() -> str:
    """The processor's name, or `unknown`."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def memory_bytes() -> int:
    """All memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


# Versions, to repeat a run with the same programs.


PACKAGES = ("websockets", "scapy", "pyarrow", "numpy", "pyspark")


@cache
def versions() -> dict[str, str]:
    """For the manifest. `nodes` is a digest of the nodes' sources, which change more often than the version."""
    return {
        "testbed": __version__,
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _installed(name))},
        "nodes": nodes_digest(),
    }


def nodes_digest() -> str:
    """Digest of the sources that go into nodes.pyz, by name and content."""
    from testbed.backends.common.zipapp import sources

    digest = sha256()
    for name, content in sources():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
