"""The trace of a simulated run: what the analysis would have read out of captures, link by link, as two tables.

The columns are those of `analysis` (a test compares them); its metrics begin with these tables.
"""

from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nodes.protocol.joined import LENGTH, shares
from nodes.protocol.wire import Kind, Message, encode
from nodes.runtime.log import hex_id
from testbed.backends.simulated.capture import CapturedStream, DirectionCapture
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.link_layer import Flow
from testbed.backends.simulated.loop import SECOND
from testbed.backends.simulated.node import EPOCH_NS
from testbed.backends.simulated.stream_contents import Run, Written

MESSAGES = pa.schema(
    [
        *((name, pa.string()) for name in ("link", "direction", "src", "dst", "kind")),
        *((name, pa.int32()) for name in ("priority", "hops")),
        *((name, pa.string()) for name in ("origin", "id", "topic")),
        *((n, pa.int64()) for n in ("payload_bytes", "published_ns", "first_ns", "last_ns")),
        ("complete", pa.bool_()),
        ("frames", pa.int32()),
        *((name, pa.int64()) for name in ("websocket_bytes", "header_bytes")),
        *((name, pa.int32()) for name in ("pieces", "packets")),
        ("label_bytes", pa.int64()),
        *((name, pa.int32()) for name in ("flags", "overlay_kind", "carried_kind", "joined")),
        *((name, pa.int64()) for name in ("stalled_ns", "repeated_ns")),
    ]
)
COUNTS = (
    *("packets", "wire_bytes", "ethernet_bytes", "ip_bytes", "tcp_bytes", "retransmitted_bytes"),
    *("websocket_bytes", "label_bytes", "header_bytes", "payload_bytes", "control_bytes"),
    *("unread_bytes", "udp_acks_bytes", "other_bytes", "tcp_packets", "data_packets"),
    *("ack_packets", "retransmitted_packets", "retransmitted_payload", "reordered_packets"),
    *("udp_ack_packets", "other_packets", "connections", "publish_messages", "control_messages"),
    *("compressed_messages", "orphan_pieces", "missing_bytes", "lost_tail_bytes"),
    *("mqtt_bytes", "mqtt_messages", "mqtt_control", "datagrams_bytes", "datagram_packets"),
    "compressed_streams",
)
LINKS = pa.schema(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        *((name, pa.int64()) for name in COUNTS),
    ]
)
LINK_UTILIZATION = pa.schema(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        *((name, pa.int64()) for name in ("from_ns", "packets", "bytes")),
    ]
)


def write_trace(lab: SimulatedLab, folder: Path) -> dict[str, dict[str, int]]:
    """messages.parquet, links.parquet and link_utilization.parquet; packets and bytes of each link."""
    folder.mkdir()
    origins = {node.number: node.name for node in lab.topology.nodes}
    rows: dict[str, list[Any]] = {name: [] for name in MESSAGES.names}
    links = [link_row(capture, origins, rows) for capture in lab.captures]
    pq.write_table(pa.table(rows, schema=MESSAGES), folder / "messages.parquet", compression="zstd")
    pq.write_table(pa.Table.from_pylist(links, LINKS), folder / "links.parquet", compression="zstd")
    use = [row for capture in lab.captures for row in use_rows(capture)]
    pq.write_table(
        pa.Table.from_pylist(use, LINK_UTILIZATION),
        folder / "link_utilization.parquet",
        compression="zstd",
    )
    counted = {node.name: {"packets": 0, "bytes": 0, "dropped": 0} for node in lab.topology.nodes}
    for row in links:
        counted[row["link"]]["packets"] += row["packets"]
        counted[row["link"]]["bytes"] += row["wire_bytes"]
    return counted


def link_row(
    capture: DirectionCapture, origins: Mapping[int, str], rows: dict[str, list[Any]]
) -> dict[str, Any]:
    """What one direction of a link carried; the messages in it are added to the rows' columns."""
    totals = dict.fromkeys(COUNTS, 0) | capture.counts()
    for flow, seen in capture.streams.items():
        _Stream(capture, flow, seen).add_to(rows, totals, origins)
    return {"link": capture.link, "direction": capture.direction, **totals}


def use_rows(capture: DirectionCapture) -> list[dict[str, Any]]:
    """What one direction of a link carried in each second in which anything passed."""
    return [
        {
            "link": capture.link,
            "direction": capture.direction,
            "from_ns": EPOCH_NS + second * SECOND,
            "packets": packets,
            "bytes": size,
        }
        for second, (packets, size) in sorted(capture.by_second.items())
    ]


class _Stream:
    """One stream as it was seen at one place; each byte counts when it first passed."""

    def __init__(self, capture: DirectionCapture, flow: Flow, seen: CapturedStream) -> None:
        self._capture, self._flow = capture, flow
        starts, lengths, times = (
            np.frombuffer(column, np.int64) for column in (seen.starts, seen.lengths, seen.times)
        )
        ahead = np.concatenate(([0], np.maximum.accumulate(starts + lengths)[:-1]))
        again = starts < ahead
        places, first, which = np.unique(starts, return_index=True, return_inverse=True)
        fresh, passed = lengths[first], times[first] + EPOCH_NS
        repeated = np.zeros(len(places), np.int64)
        np.maximum.at(repeated, which, times - times[first][which])
        self._repeated: list[int] = repeated.tolist()
        self._starts: list[int] = places.tolist()
        self._lengths: list[int] = fresh.tolist()
        self._seen: list[int] = passed.tolist()
        complete = np.maximum.accumulate(passed)
        self._complete: list[int] = complete.tolist()
        # Links keep the order: had nothing been lost, each would have passed before all beyond it.
        prompt = np.minimum.accumulate(passed[::-1])[::-1]
        self._stalled: list[int] = (complete - prompt).tolist()
        self._before: list[int] = np.concatenate(([0], np.cumsum(fresh))).tolist()
        self._end = self._starts[-1] + self._lengths[-1]
        self._totals = {
            "data_packets": len(starts),
            "retransmitted_packets": int(again.sum()),
            "retransmitted_payload": int(lengths[again].sum()),
            "retransmitted_bytes": int(lengths.sum() - fresh.sum()),
            "unread_bytes": int(fresh.sum()),
            "missing_bytes": self._end - int(fresh.sum()),
        }

    def add_to(
        self, rows: dict[str, list[Any]], totals: dict[str, int], origins: Mapping[int, str]
    ) -> None:
        """Add the messages to the rows, and their bytes to the totals."""
        for name, count in self._totals.items():
            totals[name] += count
        for begin, end in self._flow.ledger.protocol:
            self._read(totals, "websocket_bytes", self._covered(begin, end))
        for written in self._flow.ledger.messages:
            for row in self._rows(written, totals, origins):
                for name, column in rows.items():
                    column.append(row[name])

    def _rows(
        self, written: Written, totals: dict[str, int], origins: Mapping[int, str]
    ) -> list[dict[str, Any]]:
        """One for the message, or one for each publication in it; none if it is not readable."""
        # A piece whose label was not seen cannot be distinguished from others.
        runs = [run for run in written.runs if run.at + run.head < self._end]
        present = sum(self._covered(run.begin, run.end) for run in runs)
        header = written.header
        if header is None or present < written.needed:
            return []
        length = sum(run.end - run.begin for run in runs)
        complete = written.finished and present == written.size
        parts = written.parts if complete else []
        header_bytes = min(written.header_bytes, length)
        frame_bytes = sum(self._covered(run.at, run.at + run.head) for run in runs)
        label_bytes = sum(self._covered(run.at + run.head, run.begin) for run in runs)
        self._read(totals, "websocket_bytes", frame_bytes)
        self._read(totals, "label_bytes", label_bytes)
        final = self._segment(min(runs[-1].end, self._end) - 1)
        whole = {
            "link": self._capture.link,
            "direction": self._capture.direction,
            "src": self._flow.source,
            "dst": self._flow.target,
            "first_ns": self._seen[self._segment(runs[0].at)],
            "last_ns": self._complete[final],
            "complete": complete,
            "frames": len(runs),
            "pieces": len(runs),
            "packets": self._packets(runs),
            "overlay_kind": written.message_type,
            "carried_kind": written.inner_type,
            "joined": max(1, len(parts)),
            "stalled_ns": self._stalled[final],
            "repeated_ns": self._repeated[final],
        }
        count = max(1, len(parts))
        sizes = [_own_sizes(one) for one in parts] or [(0, length - header_bytes)]
        seen = [size for _, size in sizes] if parts else [present - header_bytes]
        shared = [shares(size, count) for size in (frame_bytes, label_bytes, header_bytes)]
        rows = []
        for place, one in enumerate(parts or [header]):
            own_bytes, payload_bytes = sizes[place]
            frame_share, label_share, header_share = (each[place] for each in shared)
            self._count(totals, one, own_bytes + header_share, seen[place])
            rows.append(
                {
                    **whole,
                    "kind": one.kind.name,
                    "priority": one.priority,
                    "hops": one.hops,
                    "origin": origins.get(one.origin, f"#{one.origin}"),
                    "id": hex_id(one.message_id),
                    "topic": one.topic,
                    "payload_bytes": payload_bytes,
                    "published_ns": one.published_ns,
                    "websocket_bytes": frame_share,
                    "header_bytes": own_bytes + header_share,
                    "label_bytes": label_share,
                    "flags": one.wire_flags,
                }
            )
        return rows

    def _count(
        self, totals: dict[str, int], message: Message, header_bytes: int, payload_bytes: int
    ) -> None:
        """Count a message's bytes; control messages have one layer for all of them."""
        if message.kind is Kind.PUBLISH:
            totals["publish_messages"] += 1
            self._read(totals, "header_bytes", header_bytes)
            self._read(totals, "payload_bytes", payload_bytes)
        else:
            totals["control_messages"] += 1
            self._read(totals, "control_bytes", header_bytes + payload_bytes)

    def _packets(self, runs: list[Run]) -> int:
        """How many segments carried it; two of its pieces may lie in one."""
        count, last = 0, -1
        for run in runs:
            begin = self._segment(run.at)
            end = self._segment(min(run.end, self._end) - 1)
            count += end - begin + (begin != last)
            last = end
        return count

    @staticmethod
    def _read(totals: dict[str, int], layer: str, size: int) -> None:
        totals[layer] += size
        totals["unread_bytes"] -= size

    def _segment(self, at: int) -> int:
        return bisect_right(self._starts, at) - 1

    def _covered(self, begin: int, end: int) -> int:
        """How many bytes of the range were seen."""
        return self._covered_up_to(end) - self._covered_up_to(begin)

    def _covered_up_to(self, at: int) -> int:
        piece = bisect_right(self._starts, at) - 1
        if piece < 0:
            return 0
        return self._before[piece] + min(at - self._starts[piece], self._lengths[piece])


def _own_sizes(part: Message) -> tuple[int, int]:
    """Of a publication among several: the bytes of its length and header, and of its payload."""
    return LENGTH.size + len(encode(part)) - len(part.payload), len(part.payload)
