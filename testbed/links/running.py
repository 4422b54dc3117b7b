"""Whether interfaces can carry packets now: they are up, and so is the other end of their cable."""

import struct
from collections.abc import Iterator

from testbed.links import messages as m
from testbed.links.netlink import Netlink

_GETLINK = 18
_HEADER = struct.Struct("=4xiII")  # struct ifinfomsg: index, flags
_ATTRIBUTE = struct.Struct("=HH")
_IFLA_OPERSTATE, _IFLA_EXT_MASK = 16, 29
_SKIP_STATISTICS = 1 << 3
_UNKNOWN, _UP = 0, 6


def running(kernel: Netlink) -> set[int]:
    """Numbers of the interfaces that the kernel has switched through."""
    question = m.about_link() + m.u32(_IFLA_EXT_MASK, _SKIP_STATISTICS)
    return {
        index for index, state in map(_state, kernel.ask_all(_GETLINK, question)) if state == _UP
    }


def _state(answer: bytes) -> tuple[int, int]:
    index = _HEADER.unpack_from(answer)[0]
    for kind, place, _ in attributes(answer, _HEADER.size):
        if kind == _IFLA_OPERSTATE:
            return index, answer[place]
    return index, _UNKNOWN


def attributes(data: bytes, place: int) -> Iterator[tuple[int, int, int]]:
    """Kind, begin and end of each attribute's value."""
    while place + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, place)
        yield kind & 0x3FFF, place + _ATTRIBUTE.size, place + length
        place += max((length + 3) & ~3, _ATTRIBUTE.size)
