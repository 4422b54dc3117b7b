"""What this machine has, what each missing thing costs, and the command that helps.

`probe` asks the machine, `judge` knows what the answers mean; only the first needs a machine to be tested on.
"""

import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from testbed.errors import TestbedError
from testbed.places import captures_root

Status = Literal["ok", "limited", "missing"]

OLDEST_PYTHON = (3, 11)
SPARK_MEMORY = 3 << 30  # driver, Python workers and the JVM together, measured on the demo's size
NODE_MEMORY = 25 << 20  # one node with its interpreter
LOW_DISK = 2 << 30
NO_DISK = 200 << 20
FILES_PER_LINK = 3  # two ears and a file, in the capture process
SPARE_FILES = 64
AMPLE_FILES = 4096
AMPLE_RECEIVE_BUFFER = 4 << 20


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `costs` and `fix` are empty where nothing is amiss."""

    name: str
    status: Status
    found: str
    costs: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found, not yet judged. Pairs are (whether, a phrase that says so or why not)."""

    python: tuple[int, int, int]
    root: bool
    namespaces: tuple[bool, str]
    netem: bool
    tbf: bool
    tun: str  # why taps cannot be made, or empty
    engine: tuple[bool, str]
    image: tuple[bool, str]
    arm: tuple[bool, str]
    memory: int  # bytes that programs could still take
    cores: int
    captures: Path
    disk_free: int
    open_files: int  # the most one process may open
    receive_buffer: int  # bytes a socket may ask for without root


def examine(java: Check) -> tuple[Check, ...]:
    """All findings; the one on Java comes from the caller, as only the command line knows the analysis."""
    return (*judge(probe()), java)


def as_json(checks: Iterable[Check]) -> dict[str, Any]:
    """The findings as a JSON document."""
    return {"checks": [asdict(check) for check in checks]}


def judge(facts: Facts) -> tuple[Check, ...]:
    """What the facts mean for somebody who wants to run labs here."""
    return (
        _python(facts),
        _namespaces(facts),
        *_emulators(facts),
        _engine(facts),
        _image(facts),
        _arm(facts),
        _memory(facts),
        _cores(facts),
        _disk(facts),
        _open_files(facts),
        _receive_buffer(facts),
    )


def _python(facts: Facts) -> Check:
    found = ".".join(str(part) for part in facts.python)
    if facts.python[:2] >= OLDEST_PYTHON:
        return Check("Python", "ok", found)
    return Check("Python", "missing", found, "nothing works", "install Python 3.11 or later")


def _namespaces(facts: Facts) -> Check:
    able, reason = facts.namespaces
    if able:
        return Check("network namespaces", "ok", reason)
    return Check(
        "network namespaces",
        "missing",
        reason,
        "no lab can run here",
        "run as root, or allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000",
    )


def _emulators(facts: Facts) -> tuple[Check, Check, Check]:
    netem = Check("netem", "ok", "the kernel delays, loses and limits")
    if not facts.netem:
        netem = Check(
            "netem",
            "limited",
            "not in this kernel",
            "the relay shapes links instead: exact, but it takes CPU time for each packet",
            "sudo modprobe sch_netem",
        )
    tbf = Check("tbf", "ok", "the kernel limits rates")
    if not facts.tbf:
        tbf = Check(
            "tbf", "limited", "not in this kernel", "`emulator: tbf`", "sudo modprobe sch_tbf"
        )
    relay = Check("relay", "ok", "/dev/net/tun works")
    if facts.tun:
        relay = Check(
            "relay",
            "limited" if facts.netem else "missing",
            facts.tun,
            "`emulator: relay`" if facts.netem else "links with delay, jitter or loss",
            "sudo modprobe tun; in a container: --device /dev/net/tun",
        )
    return netem, tbf, relay


def _engine(facts: Facts) -> Check:
    answers, reason = facts.engine
    if not answers:
        return Check(
            "Docker engine",
            "limited",
            reason,
            "nodes run as processes (netns backend) instead of containers",
            "make engine",
        )
    if not facts.root:
        return Check(
            "Docker engine",
            "limited",
            f"{reason}, but you are not root",
            "links cannot be put into containers; the netns backend serves instead",
            "sudo",
        )
    return Check("Docker engine", "ok", reason)


def _image(facts: Facts) -> Check:
    obtainable, reason = facts.image
    if obtainable:
        return Check("node image", "ok", reason)
    costs = "the docker backend; the netns backend serves instead"
    fix = "make engine" if not facts.engine[0] else "sudo apt-get install mmdebstrap"
    return Check("node image", "limited", reason, costs, fix)


def _arm(facts: Facts) -> Check:
    runs, reason = facts.arm
    if runs:
        return Check("arm64 programs", "ok", reason)
    return Check(
        "arm64 programs",
        "limited",
        reason,
        "images made for Raspberry Pis",
        "sudo apt-get install qemu-user-static binfmt-support",
    )


def _memory(facts: Facts) -> Check:
    nodes = max(0, facts.memory - SPARK_MEMORY) // NODE_MEMORY
    found = f"{_size(facts.memory)} available"
    if facts.memory >= 2 * SPARK_MEMORY:
        return Check("memory", "ok", f"{found}, enough for about {nodes} nodes and the analysis")
    costs = f"labs of more than about {nodes} nodes with their analysis"
    if facts.memory < SPARK_MEMORY:
        costs = "the analysis may be ended by the kernel: Spark takes about 3 GiB"
    return Check("memory", "limited", found, costs, "close other programs, or add memory")


def _cores(facts: Facts) -> Check:
    found = f"{facts.cores}"
    if facts.cores > 1:
        return Check("CPU cores", "ok", found)
    costs = "nodes, links and capture share one core: delays of busy labs are the machine's"
    return Check("CPU cores", "limited", found, costs, "use a machine with two cores or more")


def _disk(facts: Facts) -> Check:
    found = f"{_size(facts.disk_free)} free in {facts.captures}"
    if facts.disk_free >= LOW_DISK:
        return Check("disk", "ok", found)
    status: Status = "limited" if facts.disk_free >= NO_DISK else "missing"
    costs = "long runs: packets that find the disk full are lost"
    fix = "remove old runs, or set TESTBED_CAPTURES to a folder with more room"
    return Check("disk", status, found, costs, fix)


def _open_files(facts: Facts) -> Check:
    links = max(0, facts.open_files - SPARE_FILES) // FILES_PER_LINK
    if facts.open_files >= AMPLE_FILES:
        return Check("open files", "ok", f"{facts.open_files} a process")
    return Check(
        "open files",
        "limited",
        f"{facts.open_files} a process",
        f"labs of more than {links} links cannot be captured",
        f"sudo prlimit --pid $$ --nofile={AMPLE_FILES}",
    )


def _receive_buffer(facts: Facts) -> Check:
    if facts.root:
        return Check("capture buffers", "ok", "as large as needed (root)")
    found = f"{_size(facts.receive_buffer)} a link end"
    if facts.receive_buffer >= AMPLE_RECEIVE_BUFFER:
        return Check("capture buffers", "ok", found)
    return Check(
        "capture buffers",
        "limited",
        found,
        "bursts on links beyond about 100 Mbit/s may be missing in captures (they are counted)",
        f"sudo sysctl -w net.core.rmem_max={AMPLE_RECEIVE_BUFFER}",
    )


def _size(count: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count / 1024:.0f} KiB"


def probe() -> Facts:
    """Ask the machine; leaves nothing behind."""
    from testbed.backends.engine import engine_answers

    engine = engine_answers()
    namespaces, netem, tbf, tun = _probe_links()
    captures = captures_root()
    return Facts(
        python=sys.version_info[:3],
        root=os.geteuid() == 0,
        namespaces=namespaces,
        netem=netem,
        tbf=tbf,
        tun=tun,
        engine=engine,
        image=_probe_image() if engine[0] else (False, "unknown while no engine answers"),
        arm=_probe_arm(platform.machine(), Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")),
        memory=_probe_memory(Path("/proc/meminfo")),
        cores=len(os.sched_getaffinity(0)),
        captures=captures,
        disk_free=shutil.disk_usage(_existing(captures)).free,
        open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        receive_buffer=int(Path("/proc/sys/net/core/rmem_max").read_text()),
    )


def _probe_links() -> tuple[tuple[bool, str], bool, bool, str]:
    from testbed.links.probe import look

    try:
        found = look()
    except TestbedError as error:
        return (False, error.message), False, False, "not tried"
    able = found.capabilities
    return (found.namespaces, found.reason), able.netem, able.tbf, able.tun


def _probe_image() -> tuple[bool, str]:
    from testbed.backends.image import image_obtainable

    return image_obtainable()


def _probe_arm(machine: str, handler: Path) -> tuple[bool, str]:
    """Whether arm64 programs run here: natively, or through the kernel's handler for foreign programs."""
    if machine in ("aarch64", "arm64"):
        return True, "this is one"
    try:
        enabled = handler.read_text().startswith("enabled")
    except OSError:
        return False, "no handler (binfmt_misc) is registered"
    return (True, "through qemu") if enabled else (False, "the handler (binfmt_misc) is disabled")


def _probe_memory(meminfo: Path) -> int:
    for line in meminfo.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return 0


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
