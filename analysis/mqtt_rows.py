"""MQTT packets as rows: one control packet on one link in one direction."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.mqtt_streams import Content, Packet, digest

Array = npt.NDArray[Any]

MQTT = pa.struct(
    [
        *((name, pa.string()) for name in ("link", "direction", "src", "dst")),
        ("version", pa.int32()),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("qos", pa.int32()),
        ("retain", pa.bool_()),
        ("dup", pa.bool_()),
        ("packet_id", pa.int32()),
        *((name, pa.int64()) for name in ("payload_bytes", "header_bytes", "properties_bytes")),
        ("digest", pa.string()),
        *((name, pa.int64()) for name in ("first_ns", "last_ns")),
        ("complete", pa.bool_()),
        ("packets", pa.int32()),
    ]
)


class Cost(NamedTuple):
    """What the packets of a stream take, as far as it was captured."""

    mqtt_bytes: int
    payload_bytes: int
    mqtt_messages: int
    mqtt_control: int


def rows_of(
    content: Content, packets: list[Packet], about: dict[str, Any]
) -> tuple[pa.StructArray, Cost]:
    """These packets, and what they cost; `about` is the same in all rows: link, direction, src, dst, version."""
    stream = content.stream
    edges = np.array([(p.head.at, p.payload_at, p.head.end) for p in packets], np.int64)
    begin, payload_at, end = edges.reshape(-1, 3).T
    headed, carried = content.seen(begin, payload_at), content.seen(payload_at, end)
    whole: Array = headed + carried == end - begin
    known: Array = whole & content.known(payload_at, end)
    last = content.place(np.minimum(end, len(content.data)) - 1)
    first_piece, last_piece = stream.segment(content.place(begin)), stream.segment(last)
    published = np.array([p.publication is not None for p in packets], bool)
    rows = [
        {
            **about,
            "kind": packet.head.kind.name,
            "payload_bytes": packet.head.end - packet.payload_at,
            "header_bytes": packet.payload_at - packet.head.at,
            "first_ns": first_ns,
            "last_ns": last_ns,
            "complete": complete,
            "packets": touched,
            **_of_publication(packet, content.data if readable else None),
        }
        for packet, first_ns, last_ns, complete, readable, touched in zip(
            packets,
            stream.seen_ns[first_piece].tolist(),
            stream.complete_ns[last_piece].tolist(),
            whole.tolist(),
            known.tolist(),
            (last_piece - first_piece + 1).tolist(),
            strict=True,
        )
    ]
    count = int(published.sum())
    cost = Cost(int(headed.sum()), int(carried.sum()), count, len(packets) - count)
    return pa.array(rows, MQTT), cost


def _of_publication(packet: Packet, data: bytes | None) -> dict[str, Any]:
    """What only a PUBLISH has; no `data`: not all of its payload was captured."""
    published = packet.publication
    if published is None:
        return {}
    head = packet.head
    return {
        "topic": packet.topic,
        "qos": head.qos,
        "retain": bool(head.flags & 1),
        "dup": bool(head.flags & 8),
        "packet_id": published.packet_id,
        "properties_bytes": published.properties,
        "digest": None if data is None else digest(data[packet.payload_at : head.end]),
    }
