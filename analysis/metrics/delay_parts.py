"""The parts of a hop's time: propagation, transmission, retransmission, and the rest, which is queueing.

Each part in this order is at most what is left, so they add up, and none is negative:

    propagation     the configured delays of the hop's links: up from the sender, through all routers that it is behind,
                    and down to the receiver; two nodes with a common router meet there, below its own link
    transmission    the time of the message's bytes on otherwise idle links: all of it on the slowest link, and one
                    packet of it on each other link, since packets are pipelined
    retransmission  how much later the message was complete because packets were lost and sent again
    queue           everything else: in the node, in its kernel, before a link, behind jitter, in a TCP window
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.inputs.link_settings import PathToCore

Array = npt.NDArray[Any]
PARTS = ("queue_s", "transmission_s", "propagation_s", "retransmission_s")
USUAL_PACKET_BYTES = 66.0  # around a segment: Ethernet 14, IP 20, TCP 32
UNKNOWN = -1


class Crossing(NamedTuple):
    """The links that a hop crosses: the sum of their delays, the slowest, and the sum of the others."""

    delay_s: float
    slowest_byte_s: float
    other_byte_s: float
    packet_bytes: float  # of a packet's headers on the sender's link


class Paths:
    """The paths of all nodes to the core and back, and the size of packet headers there."""

    def __init__(
        self, paths: Sequence[PathToCore], packet_bytes: Mapping[tuple[str, str], float]
    ) -> None:
        """`packet_bytes`: bytes of a packet's headers on a (link, direction)."""
        self._paths = paths
        self._packet_bytes = packet_bytes
        self._of: dict[tuple[str, str], list[int]] = {}  # by end, in the order of time
        for number, path in enumerate(paths):
            self._of.setdefault((path.node, path.direction), []).append(number)

    def at(self, direction: str, nodes: Array, known: Array, times_ns: Array) -> Array:
        """For each node and time the number of the path in this direction; UNKNOWN if it is not known."""
        found = np.full(len(nodes), UNKNOWN)
        for node in set(nodes.tolist()):
            of_node = self._of.get((node, direction))
            if of_node is None:
                continue
            mine = np.flatnonzero(known & (nodes == node))
            if len(of_node) == 1:
                found[mine] = of_node[0]
                continue
            begins = [self._paths[number].from_ns for number in of_node]
            places = [bisect_right(begins, at_ns) - 1 for at_ns in times_ns[mine].tolist()]
            found[mine] = [of_node[place] if place >= 0 else UNKNOWN for place in places]
        return found

    def crossing(self, up: int, down: int) -> Crossing:
        """The links between two ends, without those at and above a router of both."""
        first, last = self._paths[up], self._paths[down]
        # Routers form a tree: those that both ends have are the one where they meet, and all above it.
        shared = len({*first.routers} & {*last.routers})
        delay_s, byte_s = 0.0, list[float]()
        for path in (first, last):
            crossed = 1 + len(path.routers) - shared
            delay_s += sum(path.delays_s[:crossed])
            byte_s += path.bytes_s[:crossed]
        headers = self._packet_bytes.get((first.node, first.direction), USUAL_PACKET_BYTES)
        slowest = max(byte_s)
        return Crossing(delay_s, slowest, sum(byte_s) - slowest, headers)


def with_parts(hops: pa.Table, paths: Paths | None) -> pa.Table:
    """Add the PARTS of each completed hop; null where a link is unknown, or without paths.

    Needs src, dst, ready_ns, sent_first_ns, received_last_ns, stream_bytes, packets, stalled_ns, repeated_up_ns,
    repeated_down_ns.
    """
    parts = np.full((len(PARTS), hops.num_rows), np.nan)
    if paths is not None:
        known = _is_known(hops, "ready_ns") & _is_known(hops, "received_last_ns")
        times = _whole(hops, "ready_ns")
        ends = [hops[name].to_numpy() for name in ("src", "dst")]
        up = paths.at("up", ends[0], known, times)
        down = paths.at("down", ends[1], known, times)
        rows = np.flatnonzero((up != UNKNOWN) & (down != UNKNOWN))
        pairs, which = np.unique(np.stack((up[rows], down[rows])), axis=1, return_inverse=True)
        crossings = np.array([paths.crossing(*pair) for pair in pairs.T.tolist()])
        if len(rows):
            parts[:, rows] = _parts(hops, rows, crossings[which.reshape(-1)].T)
    for name, values in zip(PARTS, parts, strict=True):
        hops = hops.append_column(name, pa.array(values, from_pandas=True))
    return hops


def _parts(hops: pa.Table, rows: Array, crossings: Array) -> Array:
    """PARTS of these rows, which have all times."""
    delay_s, slowest, others, packet_bytes = crossings

    packets = hops["packets"].to_numpy()[rows]
    wire_bytes = _whole(hops, "stream_bytes")[rows] + packets * packet_bytes
    transmission = wire_bytes * (slowest + others / np.maximum(packets, 1.0))
    total = (_whole(hops, "received_last_ns") - _whole(hops, "ready_ns"))[rows] / 1e9
    left = np.maximum(total, 0.0)
    taken = []
    for value in (delay_s, transmission, _lost_s(hops, rows)):
        part = np.minimum(left, value)
        left = np.maximum(left - part, 0.0)
        taken.append(part)
    propagation, sending, again = taken
    return np.stack((total - (propagation + sending + again), sending, propagation, again))


def _lost_s(hops: pa.Table, rows: Array) -> Array:
    """The delay by retransmissions.

    A gap is visible on the receiver's link. Loss of the last packet after the sender's link is visible only there, as
    a retransmission before the message arrived, of which the receiver's link has one copy.
    """
    names = (
        "sent_first_ns",
        "received_last_ns",
        "stalled_ns",
        "repeated_up_ns",
        "repeated_down_ns",
    )
    first, last, stalled, up, down = (_whole(hops, name)[rows] for name in names)
    at_the_end = (down == 0) & _is_known(hops, "sent_first_ns")[rows] & (first + up <= last)
    again = np.where(at_the_end, up, 0)
    lost: Array = np.maximum(0, np.maximum(stalled, again)) / 1e9
    return lost


def _whole(hops: pa.Table, name: str) -> Array:
    """A column of whole numbers, 0 for null: floating-point numbers are too coarse for nanoseconds."""
    numbers: Array = hops[name].fill_null(0).to_numpy()
    return numbers


def _is_known(hops: pa.Table, name: str) -> Array:
    valid: Array = hops[name].is_valid().to_numpy()
    return valid
