"""What shaping notes down: on the alias of its ifb device, where it lasts as long as what it is about.

It says whose the device is, how the interface was found, and what was done. A restart of the board takes it all away.
"""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from nodes.board.plan import Kernel
from nodes.board.problems import WrongInput

PREFIX = "tb"
_LONGEST = 255  # bytes the kernel keeps


@dataclass(frozen=True, slots=True)
class Note:
    """Of the links file `testbed`; an empty `plan`: it is not whole (yet)."""

    testbed: str
    interface: str
    offloads: tuple[str, ...]  # that were on
    segments: int  # of gso_max_segs
    kernel: Kernel
    down: bool = False  # packets of peers come through the ifb device
    plan: str = ""
    peers: str = ""


def device_name(path: Path, interface: str) -> str:
    """Of the ifb device; the same for the same file and interface."""
    return PREFIX + sha256(f"{interface}\0{path}".encode()).hexdigest()[:10]


def write_note(note: Note) -> str:
    """As an alias."""
    data = asdict(note)
    kernel = "+".join(name for name, has in data["kernel"].items() if has)
    offloads = "+".join(note.offloads)
    text = json.dumps({**data, "kernel": kernel, "offloads": offloads}, separators=(",", ":"))
    if len(text.encode()) > _LONGEST:
        raise WrongInput(f"the path {note.testbed} is too long; 80 characters are a good length")
    return text


def read_note(alias: str) -> Note | None:
    """None if it is not ours."""
    try:
        data: Any = json.loads(alias)
        kernel = data["kernel"].split("+")
        return Note(
            testbed=str(data["testbed"]),
            interface=str(data["interface"]),
            offloads=tuple(name for name in data["offloads"].split("+") if name),
            segments=int(data["segments"]),
            kernel=Kernel(netem="netem" in kernel, bpf="bpf" in kernel),
            down=bool(data["down"]),
            plan=str(data["plan"]),
            peers=str(data["peers"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
