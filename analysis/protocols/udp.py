"""Plain UDP as a table: source, target, number and time of datagrams. Their content is not read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from analysis.captures.packets import Packets

Array = npt.NDArray[Any]
Ends = tuple[int, int, int, int]  # addresses and ports: from, to
# One pair of addresses and ports on one link in one direction.
DATAGRAMS = pa.struct(
    [
        *((name, pa.string()) for name in ("link", "direction", "src", "dst")),
        *((name, pa.int32()) for name in ("src_port", "dst_port")),
        *((name, pa.int64()) for name in ("datagrams", "udp_acks", "payload_bytes", "wire_bytes")),
        *((name, pa.int64()) for name in ("first_ns", "last_ns")),
    ]
)


@dataclass(slots=True)
class _Flow:
    datagrams: int
    payload_bytes: int
    wire_bytes: int
    first_ns: int
    last_ns: int
    single: int  # datagrams of one byte,
    single_bytes: int  # and their bytes on the wire

    def grow(self, more: "_Flow") -> None:
        self.datagrams += more.datagrams
        self.payload_bytes += more.payload_bytes
        self.wire_bytes += more.wire_bytes
        self.first_ns = min(self.first_ns, more.first_ns)
        self.last_ns = max(self.last_ns, more.last_ns)
        self.single += more.single
        self.single_bytes += more.single_bytes


class Datagrams:
    """All UDP flows of a link.

    A datagram of one byte between the two ends of a TCP connection is an acknowledgement of a chunk (`ack: udp`).
    """

    def __init__(self) -> None:
        self._flows: dict[tuple[str, Ends], _Flow] = {}
        self._connections: set[tuple[tuple[int, int], ...]] = set()

    def add(self, packets: Packets, which: Array, direction: str, ends: Ends) -> None:
        """Add datagrams of one flow."""
        sizes, wire, ts_ns = (
            column[which] for column in (packets.payload_len, packets.wirelen, packets.ts_ns)
        )
        single = sizes == 1
        more = _Flow(
            len(which),
            int(sizes.sum()),
            int(wire.sum()),
            int(ts_ns.min()),
            int(ts_ns.max()),
            int(single.sum()),
            int(wire[single].sum()),
        )
        if known := self._flows.get((direction, ends)):
            known.grow(more)
        else:
            self._flows[direction, ends] = more

    def connected(self, connections: Iterable[Ends]) -> None:
        """Record that there is a TCP connection between these ends."""
        self._connections.update(map(_both, connections))

    def rows(self) -> list[dict[str, Any]]:
        """Rows with addresses as numbers, and without the link; `udp_acks_bytes` is not a column."""
        rows = []
        for (direction, ends), flow in self._flows.items():
            answering = _both(ends) in self._connections
            rows.append(
                {
                    "direction": direction,
                    "src": ends[0],
                    "dst": ends[1],
                    "src_port": ends[2],
                    "dst_port": ends[3],
                    "datagrams": flow.datagrams,
                    "udp_acks": flow.single if answering else 0,
                    "udp_acks_bytes": flow.single_bytes if answering else 0,
                    "payload_bytes": flow.payload_bytes,
                    "wire_bytes": flow.wire_bytes,
                    "first_ns": flow.first_ns,
                    "last_ns": flow.last_ns,
                }
            )
        return rows


def _both(ends: Ends) -> tuple[tuple[int, int], ...]:
    """The two ends of a flow, in either direction."""
    return tuple(sorted(((ends[0], ends[2]), (ends[1], ends[3]))))
