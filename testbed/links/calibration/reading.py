"""From packets that were sent and heard to rate and delay. Pure; times in nanoseconds, sizes of Ethernet frames."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median


@dataclass(frozen=True, slots=True)
class Heard:
    """A probe that arrived: its place in its stream, its size, when it was sent and when it came."""

    index: int
    size: int
    sent_ns: int
    came_ns: int


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a TCP stream as it arrived; `carries`: it has data, not only an acknowledgement."""

    came_ns: int
    size: int
    carries: bool = True


def delay_s(heard: Sequence[Heard], serialisation_s: float) -> float | None:
    """The median time under way, less that on the line."""
    if not heard:
        return None
    return median(one.came_ns - one.sent_ns for one in heard) / 1e9 - serialisation_s


def train_rate_bps(
    heard: Sequence[Heard], credit_bytes: int = 0, *, lost_on_line: bool = True
) -> float | None:
    """The rate of a line from how a train of equal packets, sent all at once, was spread out on it.

    A straight line through arrival against bytes; single packets that jitter moved weigh little. What a token bucket
    let pass on stored credit says nothing of the rate and is left out. `lost_on_line`: a lost packet counts with its
    bytes, as it was on the line before it was lost.
    """
    in_order = sorted(heard, key=lambda one: one.index)
    placed = [(one.index if lost_on_line else rank, one) for rank, one in enumerate(in_order)]
    paced = [(place, one) for place, one in placed if (place + 1) * one.size > credit_bytes]
    if len(paced) < 2:
        return None
    begin = paced[0][1].came_ns
    bits = [place * one.size * 8.0 for place, one in paced]
    slope = linear_regression(bits, [(one.came_ns - begin) / 1e9 for _, one in paced]).slope
    return 1 / slope if slope > 0 else None


def stream_rate_bps(frames: Sequence[Frame], skip_s: float = 0.0, missed: int = 0) -> float | None:
    """Bits a second from the first arrival to the last; headers and retransmissions count, they were on the line.

    The window opens with the first frame that carries data (the handshake is no load), or `skip_s` after it. `missed`:
    frames that arrived, too, but were not heard; they are taken to be like the others.
    """
    first = next((frame.came_ns for frame in frames if frame.carries), None)
    if first is None:
        return None
    window = [frame for frame in frames if frame.came_ns >= first + skip_s * 1e9]
    if len(window) < 2 or window[-1].came_ns == window[0].came_ns:
        return None
    carried = sum(frame.size for frame in window[1:]) * (1 + missed / len(frames))
    return carried * 8e9 / (window[-1].came_ns - window[0].came_ns)
