"""The state and the abilities of the board's kernel, read with `ip` and `tc`."""

import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.board.bpf import ALL, as_text
from nodes.board.errors import BoardError
from nodes.board.plan import ALL_TO_THE_FIRST, PREFIX, Kernel, Note, read_note

_PATIENCE_S = 30.0
_SCRATCH = f"{PREFIX}probe"
_WHERE = ":".join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


class CommandFailed(BoardError):
    """A command of `ip` or `tc` failed."""


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface as it is now."""

    name: str
    mtu: int
    segments: int  # gso_max_segs
    disciplines: dict[str, str] = field(
        default_factory=dict
    )  # kind by handle, of those that were set


def run(command: Sequence[str]) -> str:
    """The output of a command; CommandFailed has its error output."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            env={**os.environ, "PATH": _WHERE, "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise BoardError(f"there is no `{command[0]}`: apt-get install iproute2") from error
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"`{_short(command)}` did not end") from error
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise CommandFailed(f"`{_short(command)}`: {said}")
    return done.stdout


def works(*command: str) -> bool:
    """Whether the command succeeds."""
    try:
        run(command)
    except CommandFailed:
        return False
    return True


def interface(name: str) -> Interface | None:
    """None if there is no such interface."""
    try:
        (about,) = _asked("ip", "-json", "-details", "link", "show", "dev", name)
    except CommandFailed:
        return None
    found = _asked("tc", "-json", "qdisc", "show", "dev", name)
    return Interface(
        name,
        int(about["mtu"]),
        int(about.get("gso_max_segs", 0)),
        {one["handle"]: one["kind"] for one in found if one["handle"] != "0:"},
    )


def filters(device: str, parent: str) -> list[Any]:
    """The filters there; none if there is no such place."""
    try:
        return _asked("tc", "-json", "filter", "show", "dev", device, "parent", parent)
    except CommandFailed:
        return []


def notes() -> dict[str, Note | None]:
    """The ifb devices whose name could be ours, with what is noted on them."""
    found = _asked("ip", "-json", "link", "show", "type", "ifb")
    return {
        one["ifname"]: read_note(one.get("ifalias", ""))
        for one in found
        if one and one["ifname"].startswith(PREFIX)
    }


def look() -> Kernel:
    """Try on a temporary device of our own what this kernel can do."""
    works("ip", "link", "del", "dev", _SCRATCH)  # of a probe that was killed
    try:
        run(("ip", "link", "add", "name", _SCRATCH, "type", "ifb"))
    except CommandFailed as error:
        raise BoardError(
            f"no device for shaping can be made (it needs root, and the module ifb): {error}"
        ) from error
    at = ("dev", _SCRATCH)
    try:
        run(("ip", "link", "set", *at, "up"))
        every = ("parent", "1:", "protocol", "ip", "pref")
        program = ("bpf", "bytecode", as_text(ALL), "flowid", "1:1")
        try:
            run(("tc", "qdisc", "add", *at, "root", "handle", "1:", "htb"))
        except CommandFailed as error:
            raise BoardError(f"this kernel has no htb (the module sch_htb): {error}") from error
        bpf = works("tc", "filter", "add", *at, *every, "1", *program)
        if not bpf and not works(
            *("tc", "filter", "add", *at, *every, "2", "u32", "match", "u32", "0", "0"),
            *("flowid", "1:1"),
        ):
            raise BoardError(
                "this kernel has neither cls_bpf nor cls_u32: no traffic can be chosen"
            )
        run(("tc", "qdisc", "del", *at, "root"))
        return Kernel(netem=_has_netem(at, bpf), bpf=bpf)
    finally:
        works("ip", "link", "del", *at)


def _has_netem(at: tuple[str, str], bpf: bool) -> bool:
    """With the queue in bytes in front of it."""
    every = ("bpf", "bytecode", as_text(ALL)) if bpf else ("u32", "match", "u32", "0", "0")
    police = ("action", "police", "rate", "8000bit", "burst", "2000", "conform-exceed", "drop/pass")
    return (
        works("tc", "qdisc", "add", *at, "root", "handle", "1:", *ALL_TO_THE_FIRST)
        and works("tc", "qdisc", "add", *at, "parent", "1:1", "handle", "2:", "netem")
        and works(
            *("tc", "filter", "add", *at, "parent", "1:", "protocol", "ip", "pref", "1"),
            *(*every, "flowid", "1:1", *police),
        )
    )


def _asked(*command: str) -> list[Any]:
    answer: list[Any] = json.loads(run(command) or "[]")
    return answer


def _short(command: Sequence[str]) -> str:
    return " ".join(word if len(word) <= 60 else word[:57] + "..." for word in command)


# Offloads of an interface: what is on, and switching them off and on again.
#
# While a link is shaped they are off: else a 60 KiB super-packet passes a shaper as one packet, and checksums in
# captures are wrong (as in testbed/links/wiring.py).


_SIOCETHTOOL = 0x8946
# ETHTOOL_G..., ETHTOOL_S...; checksums first, which the others need
_SWITCHES = {"tx": (0x16, 0x17), "tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
_VALUE = struct.Struct("=II")


def offloads_on(ifname: str) -> list[str]:
    """Those that are on now."""
    return [name for name, (ask, _) in _SWITCHES.items() if _ethtool(ifname, ask, 0)]


def switch(ifname: str, names: Iterable[str], on: bool) -> None:
    """Switch these off or on; skip those that the interface does not have."""
    for name in names:
        _ethtool(ifname, _SWITCHES[name][1], int(on))


def _ethtool(ifname: str, command: int, value: int) -> int:
    asked = ctypes.create_string_buffer(_VALUE.pack(command, value), _VALUE.size)
    request = struct.pack("16sP16x", ifname.encode(), ctypes.addressof(asked))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            fcntl.ioctl(sock, _SIOCETHTOOL, request)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            return 0
    answer: int = _VALUE.unpack(asked.raw)[1]
    return answer
