"""The facts on a machine that the doctor collects, not yet judged. Collecting them leaves nothing behind."""

import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import testbed
from testbed.backends.docker.platforms import Machine
from testbed.backends.docker.platforms import inspect_machine as look_at_processors
from testbed.doctor.remedies import ADMINISTRATORS
from testbed.errors import TestbedError
from testbed.links.namespaces import refusing_setting
from testbed.links.tap import DEVICE
from testbed.places import captures_root


@dataclass(frozen=True, slots=True)
class Means:
    """The tools for repairs on this machine."""

    apt: bool
    systemd: bool
    dockerd: bool  # installed, whether or not it runs
    docker_host: str  # the engine that $DOCKER_HOST names, or empty
    engine_script: Path | None  # of the checkout that this program runs from
    modules: frozenset[str]  # parts of the kernel that can be loaded
    shell: int  # the process that called us


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts on this machine. Pairs are (whether, a phrase that says so or why not)."""

    python: tuple[int, int, int]
    root: bool
    namespaces: tuple[bool, str]
    # The kernel's setting that forbids them, and the value that allows them.
    refusing: tuple[str, str] | None
    netem: bool
    tbf: bool
    tun: str  # why taps cannot be made, or empty
    tun_forbidden: bool  # the device is there, but not for this user
    engine: tuple[bool, str]
    image: tuple[bool, str]
    processor: Machine
    memory: int  # bytes that programs could still take
    cores: int
    captures: Path
    disk_free: int
    open_files: int  # the most one process may open
    receive_buffer: int  # bytes a socket may ask for without root
    tasks: tuple[int, str]  # processes and threads that may still start, and the limiting setting
    inotify: int | None  # instances a user may have; None where the engine needs none
    orphans: int  # processes, containers and files of crashed labs
    means: Means


# Collecting the facts.


MODULES = ("sch_netem", "sch_tbf", "tun")
CGROUPS = Path("/sys/fs/cgroup")
WRAPPERS = ("sudo", "su", "env", "doas")


def probe() -> Facts:
    """Collect everything that `judge` needs."""
    from testbed.backends.docker.engine import engine_answers

    engine = engine_answers()
    namespaces, netem, tbf, tun = _links()
    captures = captures_root()
    shell = _calling_shell(os.getppid())
    return Facts(
        python=sys.version_info[:3],
        root=os.geteuid() == 0,
        namespaces=namespaces,
        refusing=None if namespaces[0] or os.geteuid() == 0 else refusing_setting(),
        netem=netem,
        tbf=tbf,
        tun=tun,
        tun_forbidden=Path(DEVICE).exists() and not os.access(DEVICE, os.R_OK | os.W_OK),
        engine=engine,
        image=_image() if engine[0] else (False, "unknown while no engine answers"),
        processor=look_at_processors(),
        memory=available_memory(Path("/proc/meminfo")),
        cores=len(os.sched_getaffinity(0)),
        captures=captures,
        disk_free=shutil.disk_usage(existing(captures)).free,
        open_files=_open_files(shell),
        receive_buffer=int(Path("/proc/sys/net/core/rmem_max").read_text()),
        tasks=task_capacity(Path("/proc"), CGROUPS),
        inotify=inotify_instances(Path("/proc"), CGROUPS),
        orphans=_orphans(),
        means=_means(shell),
    )


def _links() -> tuple[tuple[bool, str], bool, bool, str]:
    from testbed.links.probe import probe_machine

    try:
        found = probe_machine()
    except TestbedError as error:
        return (False, error.message), False, False, "not tried"
    able = found.capabilities
    return (found.namespaces, found.reason), able.netem, able.tbf, able.tun


def _image() -> tuple[bool, str]:
    from testbed.backends.docker.images import image_obtainable

    return image_obtainable()


def _orphans() -> int:
    from testbed.lab.orphans import find_orphans

    return sum(orphan.removable for orphan in find_orphans().orphans)


def _means(shell: int) -> Means:
    script = Path(testbed.__file__).resolve().parent.parent / "scripts" / "engine"
    return Means(
        apt=_program("apt-get") is not None,
        systemd=Path("/run/systemd/system").is_dir(),
        dockerd=_program("dockerd") is not None,
        docker_host=os.environ.get("DOCKER_HOST", ""),
        engine_script=script if script.is_file() else None,
        modules=frozenset(filter(_loadable, MODULES)),
        shell=shell,
    )


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{ADMINISTRATORS}")


def _loadable(module: str) -> bool:
    """Whether this kernel has the module as a file of its own."""
    modprobe = _program("modprobe")
    if modprobe is None:
        return False
    tried = subprocess.run(
        [modprobe, "--dry-run", "--quiet", module], capture_output=True, check=False
    )
    return tried.returncode == 0


def _calling_shell(pid: int) -> int:
    """The first ancestor process that is no wrapper such as sudo: the next command will have its limits."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return os.getpid()
    name, _, rest = stat.partition("(")[2].rpartition(")")
    parent = int(rest.split()[1])
    return _calling_shell(parent) if name in WRAPPERS and parent > 1 else pid


def _open_files(shell: int) -> int:
    try:
        _, most = resource.prlimit(shell, resource.RLIMIT_NOFILE)
    except (PermissionError, ProcessLookupError):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def available_memory(meminfo: Path) -> int:
    """Bytes that programs could still take without swapping."""
    for line in meminfo.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return 0


def task_capacity(proc: Path, cgroups: Path) -> tuple[int, str]:
    """How many more processes and threads may start, and which setting says so."""
    running = int((proc / "loadavg").read_text().split()[3].partition("/")[2])
    capacity = {
        f"kernel.{name}": int((proc / "sys" / "kernel" / name).read_text()) - running
        for name in ("pid_max", "threads-max")
    }
    for folder in _own_cgroups(proc, cgroups, "pids"):
        try:
            most = (folder / "pids.max").read_text().strip()
            now = int((folder / "pids.current").read_text())
        except OSError:
            continue
        if most != "max":
            capacity[str(folder / "pids.max")] = int(most) - now
    setting = min(capacity, key=lambda name: capacity[name])
    return max(0, capacity[setting]), setting


def _own_cgroups(proc: Path, cgroups: Path, controller: str) -> list[Path]:
    """Our group for this controller, and all above it: each can have a limit."""
    found = []
    for line in (proc / "self" / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top = cgroups
        elif controller in controllers.split(","):
            top = cgroups / controller
        else:
            continue
        own = top / path.lstrip("/")
        found += [own, *(folder for folder in own.parents if folder.is_relative_to(top))]
    return found


def inotify_instances(proc: Path, cgroups: Path) -> int | None:
    """The limit of a user; None with cgroup v1, where the engine needs none."""
    if not (cgroups / "cgroup.controllers").exists():
        return None
    return int((proc / "sys" / "fs" / "inotify" / "max_user_instances").read_text())


def existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())
