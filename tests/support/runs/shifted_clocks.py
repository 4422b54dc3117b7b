"""Rewrite a run folder as if some of its nodes had had clocks of their own: captures, logs and headers.

The true offset of each clock is known, and correct measurements of it stand in `clocks.jsonl`.
"""

import json
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nodes.protocol import wire

HEAD, RECORD = struct.Struct("<IHHIIII"), struct.Struct("<IIII")
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TrueClock:
    """A clock that is `offset_ns` ahead at `from_ns` of the lab machine's time, and gains `drift` of each second."""

    offset_ns: int
    drift: float = 0.0
    from_ns: int = 0

    def shown(self, lab_ns: int) -> int:
        """The time that the clock shows at this moment."""
        return lab_ns + self.offset_ns + round(self.drift * (lab_ns - self.from_ns))


def shift_pcap(path: Path, clock: TrueClock) -> None:
    """All packets of a file as if they had been captured with this clock."""
    data = path.read_bytes()
    out, at = [data[: HEAD.size]], HEAD.size
    while at < len(data):
        seconds, part, kept, size = RECORD.unpack_from(data, at)
        end = at + RECORD.size + kept
        seconds, part = divmod(clock.shown(seconds * SECOND + part), SECOND)
        out.append(RECORD.pack(seconds, part, kept, size) + data[at + RECORD.size : end])
        at = end
    path.write_bytes(b"".join(out))


def shift_log(path: Path, clock: TrueClock) -> None:
    """All lines of a log as if this clock had been read for them."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    moved = [{**line, "t": clock.shown(line["t"])} for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in moved))


def framed(as_frames: Callable[[wire.Message, bytes], bytes], clocks: Mapping[int, TrueClock]):
    """For `StarRun.as_frames`: write the time of the origin's clock into the header of each publication."""

    def write(message: wire.Message, mask: bytes) -> bytes:
        clock = clocks.get(message.origin)
        if clock is not None:
            message = replace(message, published_ns=clock.shown(message.published_ns))
        return as_frames(message, mask)

    return write


def measurements(
    clocks: Mapping[str, TrueClock],
    at_ns: Sequence[tuple[int, str]],
    error_ns: int,
    seed: int = 1,
) -> str:
    """`clocks.jsonl`: each clock at each of these times, wrong by at most the error that the measurement states."""
    chance = random.Random(seed)
    lines = []
    for t_ns, when in at_ns:
        for node, clock in clocks.items():
            error = chance.randint(error_ns // 2, error_ns)
            offset = clock.shown(t_ns) - t_ns + chance.randint(-error, error)
            entry = {"t_ns": t_ns, "node": node, "offset_ns": offset, "error_ns": error + 1}
            lines.append(json.dumps({**entry, "when": when}) + "\n")
    return "".join(lines)


def shift(folder: Path, clocks: Mapping[str, TrueClock]) -> None:
    """Rewrite the captures and logs of these nodes; the headers must have been written with `framed`."""
    for node, clock in clocks.items():
        shift_pcap(folder / "pcap" / f"{node}.pcap", clock)
        shift_log(folder / "logs" / f"{node}.jsonl", clock)
