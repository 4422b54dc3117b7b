"""How much fits in front of a line, and how much credit a token bucket may store. Pure."""

import math

from testbed.topology.model import Shape

ETHERNET_HEADER = 14
SMALLEST_BURST = 1600  # bytes; below a full frame (1,514) tbf drops every full-size packet
BURST_S = (
    0.0005  # on fast links the timer needs some slack; the credit stays below half a millisecond
)
SMALLEST_QUEUE = 16  # packets
QUEUE_S = 1.0


def queue_bytes(shape: Shape, mtu: int) -> int:
    """The waiting room in front of a line: as asked, else one second's worth, at least 16 packets."""
    if shape.queue_bytes is not None:
        return shape.queue_bytes
    smallest = SMALLEST_QUEUE * (mtu + ETHERNET_HEADER)
    if shape.rate_bps is None:
        return smallest
    return max(smallest, math.ceil(shape.rate_bps / 8 * QUEUE_S))


def tbf_burst(rate_bps: float, mtu: int, asked: int | None = None) -> int:
    """Stored credit of a token bucket: as asked, but at least one full frame, which is also what it is unasked.

    More would let more of rare small packets pass for free.
    """
    if asked is not None:
        return max(asked, mtu + ETHERNET_HEADER)
    return max(SMALLEST_BURST, mtu + ETHERNET_HEADER, math.ceil(rate_bps / 8 * BURST_S))
