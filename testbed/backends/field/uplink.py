"""The way between a lab's core and the boards' network: an interface of the core's own on one of this machine's.

On a bridge it is a cable to it, else a macvlan: the core then is a neighbour of the boards, with an address of its
own, and this machine forwards nothing. The interface goes with the core.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed.backends.field.boards import Uplink
from testbed.errors import InputError, MissingCapability, TestbedError
from testbed.keeper.client import Keeper
from testbed.links.namespaces import inside, privileged
from testbed.places import LabPlace

IN_CORE = "uplink"
_COMMAND_S = 10.0


def connect(lab: LabPlace, uplink: Uplink) -> None:
    """Boards can reach the core under the uplink's address; nothing happens if they can already."""
    if not privileged():
        raise MissingCapability(
            "nodes of this machine and boards in one lab need root: an interface is given to the lab",
            "sudo testbed deploy ..., or put all nodes on boards",
        )
    if not Path("/sys/class/net", uplink.interface).exists():
        raise InputError(
            f"this machine has no interface {uplink.interface!r}",
            "set `testbed_uplink_interface` in the inventory to the one in the boards' network",
        )
    core = Keeper(lab).status()["pid"]
    ns_fd = os.open(f"/proc/{core}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with inside(ns_fd):
            there = Path("/proc/thread-self/net/dev").read_text()
        if f"{IN_CORE}:" not in there:
            _make(uplink, f"tbu{core}", str(core), f"testbed {lab.folder} {IN_CORE}")
        with inside(ns_fd):
            _ip("address", "replace", uplink.address, "dev", IN_CORE)
            _ip("link", "set", IN_CORE, "up")
            Path(f"/proc/sys/net/ipv4/conf/{IN_CORE}/forwarding").write_text("1")
    finally:
        os.close(ns_fd)


def _make(uplink: Uplink, outside: str, core: str, alias: str) -> None:
    if Path("/sys/class/net", uplink.interface, "bridge").exists():
        _ip("link", "add", outside, "type", "veth", "peer", "name", IN_CORE, "netns", core)
        _ip("link", "set", outside, "alias", alias)
        _ip("link", "set", outside, "master", uplink.interface, "up")
        return
    macvlan = ("type", "macvlan", "mode", "bridge")
    _ip("link", "add", "link", uplink.interface, "name", outside, "alias", alias, *macvlan)
    _ip("link", "set", outside, "netns", core, "name", IN_CORE)


def _ip(*words: str) -> None:
    _run(("ip", *words))


def _run(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, check=False, timeout=_COMMAND_S)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise TestbedError(
            f"the way to the boards could not be made: {' '.join(argv)}: {said}",
            "`ip -br address` shows this machine's interfaces; the address must be a free one",
        )
