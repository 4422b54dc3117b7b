"""The provenance of a run: the machine, and the versions of the programs that made it."""

import os
import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from testbed import __version__


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


def congestion_control() -> str:
    """The TCP congestion control of this machine and of new network namespaces: cubic, bbr, ...; or `unknown`."""
    try:
        return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    except OSError:
        return "unknown"


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
