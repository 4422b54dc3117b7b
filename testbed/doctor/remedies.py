"""The commands that the doctor knows, each with what it changes."""

from pathlib import Path

from testbed.backends.platforms import BINFMT
from testbed.doctor.finding import Repair
from testbed.links.tap import DEVICE

OURSELVES = "testbed"  # whoever is called by this name: this program is meant
ADMINISTRATORS = "/usr/sbin:/sbin"  # not in everybody's PATH
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300")
UNTIL_REBOOT = "until the next reboot"


def install(*packages: str) -> Repair:
    """Debian's packages."""
    argv = (*APT, "install", "--yes", "--no-install-recommends", *packages)
    return Repair(argv, f"installs {', '.join(packages)}", packages=packages)


def update_packages() -> Repair:
    """So that installations find what there is now."""
    return Repair((*APT, "update"), "renews the lists of packages")


def load_module(name: str) -> Repair:
    """A part of the kernel."""
    return Repair(("modprobe", name), f"loads the kernel module {name} {UNTIL_REBOOT}")


def set_kernel(setting: str, value: object, effect: str) -> Repair:
    """A setting of the kernel."""
    return Repair(("sysctl", "-w", f"{setting}={value}"), f"{effect} {UNTIL_REBOOT}")


def share_tun() -> Repair:
    """As most systems have it."""
    return Repair(("chmod", "666", DEVICE), f"lets every user make tap devices ({DEVICE})")


def start_engine(script: Path | None) -> Repair:
    """The checkout's own script where there is one, else systemd."""
    if script is not None:
        effect = "installs docker.io and mmdebstrap if they are missing, and starts a Docker engine"
        return Repair((str(script), "start"), effect)
    return Repair(("systemctl", "start", "docker"), "starts the Docker engine")


def mount_binfmt() -> Repair:
    """Without it no handler can be seen or registered."""
    return Repair(
        ("mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)),
        f"makes the kernel's handlers for foreign programs visible {UNTIL_REBOOT}",
    )


def register_handler(name: str) -> Repair:
    """With the flag F, as Debian's package asks for."""
    return Repair(
        ("update-binfmts", "--enable", name), f"lets the kernel start programs with {name}"
    )


def enable_handler(name: str) -> Repair:
    """One that somebody has switched off."""
    return Repair(
        ("tee", str(BINFMT / name)), f"switches the kernel's handler {name} on again", given="1"
    )


def forget_handler(name: str) -> Repair:
    """One that containers cannot use, so that it can be registered as it should be."""
    return Repair(
        ("tee", str(BINFMT / name)), f"takes the kernel's handler {name} back", given="-1"
    )


def raise_limit(shell: int, files: int) -> Repair:
    """For the shell that called us, and what it starts from now on."""
    return Repair(
        ("prlimit", "--pid", str(shell), f"--nofile={files}:{files}"),
        f"lets your shell, and what it starts, open {files} files",
    )


def remove_orphans() -> Repair:
    """By our own command."""
    return Repair(
        (OURSELVES, "down", "--orphans"),
        "ends and removes what crashed labs have left (`testbed status --orphans` lists it)",
        root=False,
    )
