"""The doctor's checks, the commands that repair a lack, and their execution."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import testbed
from testbed.backends.docker.platforms import BINFMT
from testbed.links.tap import DEVICE

Status = Literal["ok", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Repair:
    """A command that helps, as words, never as text for a shell; `changes` says what it does to this machine."""

    argv: tuple[str, ...]
    changes: str
    root: bool = True
    given: str = ""  # on its standard input
    packages: tuple[str, ...] = ()  # what it installs: all installations become one

    def typed(self, as_root: bool = False) -> str:
        """The command as a user would type it."""
        sudo = ("sudo",) if self.root and not as_root else ()
        words = shlex.join(sudo + self.argv)
        return f"echo {self.given} | {words}" if self.given else words


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `costs` and `fix` are empty if all is well; `repairs` is empty if no repair is safe."""

    name: str
    status: Status
    found: str
    costs: str = ""
    fix: str = ""
    repairs: tuple[Repair, ...] = ()


def lack(
    name: str,
    status: Status,
    found: str,
    costs: str,
    repairs: tuple[Repair, ...],
    otherwise: str,
) -> Check:
    """A check that failed; its fix is the commands of its repairs, or `otherwise` without repairs."""
    fix = " && ".join(repair.typed() for repair in repairs) if repairs else otherwise
    return Check(name, status, found, costs, fix, repairs)


# The repairs, each with its effect.


OWN_PROGRAM = "testbed"  # stands for this program
ADMINISTRATORS = "/usr/sbin:/sbin"  # not in the PATH of every user
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300")
UNTIL_REBOOT = "until the next reboot"


def install(*packages: str) -> Repair:
    """Install Debian packages."""
    argv = (*APT, "install", "--yes", "--no-install-recommends", *packages)
    return Repair(argv, f"installs {', '.join(packages)}", packages=packages)


def update_packages() -> Repair:
    """Update the package lists before an installation."""
    return Repair((*APT, "update"), "renews the lists of packages")


def load_module(name: str) -> Repair:
    """Load a kernel module."""
    return Repair(("modprobe", name), f"loads the kernel module {name} {UNTIL_REBOOT}")


def set_kernel(setting: str, value: object, effect: str) -> Repair:
    """Change a setting of the kernel."""
    return Repair(("sysctl", "-w", f"{setting}={value}"), f"{effect} {UNTIL_REBOOT}")


def share_tun() -> Repair:
    """Let every user open the tun device, as on most systems."""
    return Repair(("chmod", "666", DEVICE), f"lets every user make tap devices ({DEVICE})")


def start_engine(script: Path | None) -> Repair:
    """Start the engine by the checkout's own script, else by systemd."""
    if script is not None:
        effect = "installs docker.io and mmdebstrap if they are missing, and starts a Docker engine"
        return Repair((str(script), "start"), effect)
    return Repair(("systemctl", "start", "docker"), "starts the Docker engine")


def mount_binfmt() -> Repair:
    """Mount binfmt_misc, which shows and registers handlers."""
    return Repair(
        ("mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)),
        f"makes the kernel's handlers for foreign programs visible {UNTIL_REBOOT}",
    )


def register_handler(name: str) -> Repair:
    """Register a handler with the flag F, as Debian's package does."""
    return Repair(
        ("update-binfmts", "--enable", name), f"lets the kernel start programs with {name}"
    )


def enable_handler(name: str) -> Repair:
    """Enable a handler that was disabled."""
    return Repair(
        ("tee", str(BINFMT / name)), f"switches the kernel's handler {name} on again", given="1"
    )


def forget_handler(name: str) -> Repair:
    """Unregister a handler that containers cannot use, so that it can be registered correctly."""
    return Repair(
        ("tee", str(BINFMT / name)), f"takes the kernel's handler {name} back", given="-1"
    )


def raise_limit(shell: int, files: int) -> Repair:
    """Raise the limit of the calling shell and of its later commands."""
    return Repair(
        ("prlimit", "--pid", str(shell), f"--nofile={files}:{files}"),
        f"lets your shell, and what it starts, open {files} files",
    )


def remove_orphans() -> Repair:
    """Remove orphans by our own command."""
    return Repair(
        (OWN_PROGRAM, "down", "--orphans"),
        "ends and removes what crashed labs have left (`testbed status --orphans` lists it)",
        root=False,
    )


# Execution of repairs.


NO_SUDO = "it needs root, and there is no sudo here"


@dataclass(frozen=True, slots=True)
class Done:
    """A repair that was tried, and its error, if any."""

    repair: Repair
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A repairable finding, before and after the repair."""

    name: str
    before: Check
    after: Check

    @property
    def repaired(self) -> bool:
        return self.after.status == "ok"


Run = Callable[[Repair], str]


def plan(checks: Iterable[Check], tried: Iterable[Repair] = ()) -> list[Repair]:
    """Each command once, without those that were tried; one installation of all packages comes first."""
    wanted = [repair for check in checks for repair in check.repairs]
    packages = dict.fromkeys(package for repair in wanted for package in repair.packages)
    others = dict.fromkeys(repair for repair in wanted if not repair.packages)
    steps = [*others]
    if packages:
        steps = [update_packages(), install(*packages), *steps]
    done = set(tried)
    return [step for step in steps if step not in done]


def carry_out(
    repairs: Sequence[Repair], run: Run, on_start: Callable[[Repair], None]
) -> list[Done]:
    """Run the repairs one after the other; a failure does not stop the others."""
    done = []
    for repair in repairs:
        on_start(repair)
        done.append(Done(repair, run(repair)))
    return done


def run_here(repair: Repair) -> str:
    """Run the command with its output on our standard error; return an error message, or nothing."""
    argv = list(repair.argv)
    if argv[0] == OWN_PROGRAM:
        argv[:1] = [sys.executable, "-P", "-m", testbed.__name__]
    if repair.root and os.geteuid() != 0:
        if shutil.which("sudo") is None:
            return NO_SUDO
        argv = ["sudo", *argv]
    root = str(Path(testbed.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    path = f"{os.environ.get('PATH', '')}:{ADMINISTRATORS}"
    environment = {"PATH": path, "PYTHONPATH": os.pathsep.join(paths)}
    given = {"input": repair.given.encode()} if repair.given else {"stdin": subprocess.DEVNULL}
    sys.stderr.flush()
    try:
        ended = subprocess.run(
            argv, stdout=2, env={**os.environ, **environment}, check=False, **given
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    return f"exit code {ended.returncode}" if ended.returncode else ""


def compare(before: Iterable[Check], after: Iterable[Check]) -> list[Change]:
    """The repairable findings, before and after."""
    now = {check.name: check for check in after}
    return [Change(was.name, was, now[was.name]) for was in before if was.repairs]
