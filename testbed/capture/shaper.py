"""Finds out whether packets of peers are shaped on their way into a board (`nodes.board.shaping`), and where they
come out again: the interface itself hears them before that."""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from nodes.board.links import read_links
from nodes.board.note import PREFIX, read_note
from nodes.board.problems import BoardError

_INTERFACES = Path("/sys/class/net")


@dataclass(frozen=True, slots=True)
class Shaper:
    """The device that such packets come through, and whose they are."""

    device: str
    peers: tuple[IPv4Network, ...]


def shaper_of(interface: str, before: Shaper | None) -> Shaper | None:
    """The one in force. While it is being changed, or if its file cannot be read, it counts as it was `before`."""
    for _, name in socket.if_nameindex():
        if not name.startswith(PREFIX):
            continue
        try:
            note = read_note((_INTERFACES / name / "ifalias").read_text())
            if note is None or note.interface != interface:
                continue
            if not note.plan:
                return before
            return Shaper(name, read_links(Path(note.testbed)).peers) if note.down else None
        except (OSError, BoardError):
            return before if before and before.device == name else None
    return None
