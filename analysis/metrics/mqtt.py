"""mqtt: one row for each MQTT packet on each link it crossed. mqtt_deliveries: publications from publisher to receiver.

Other brokers write no logs of ours, and MQTT numbers messages anew on each hop. So a publication is identified by its
topic and its payload's digest. Among equal publications the n-th that arrived at a broker is the n-th that each
receiver got: brokers keep the order (MQTT 5.0, 4.6). That is certain only if a receiver got as many as were sent.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.metrics.tables import schema
from analysis.protocols.mqtt import MQTT

SCHEMA = pa.schema(list(MQTT))
DELIVERIES_SCHEMA = schema("""
    topic string, digest string, occurrence int, origin string, receiver string, payload_bytes long, qos int,
    retain boolean, sent_first_ns long, received_last_ns long, delay_s double, sure boolean
""")
ROW = "an MQTT packet on a link"
COLUMNS = {
    "version": "3 (3.1), 4 (3.1.1) or 5; null if the beginning of the connection was not captured",
    "kind": "kind of packet, as in PUBLISH",
    "topic": "of a PUBLISH: its topic",
    "qos": "of a PUBLISH: quality of service",
    "retain": "of a PUBLISH: the flag RETAIN",
    "dup": "of a PUBLISH: the flag DUP",
    "packet_id": "packet identifier; each hop has its own",
    "header_bytes": "everything before the payload",
    "properties_bytes": "properties (version 5), which are part of `header_bytes`",
    "digest": "64 bits of BLAKE2b of the payload",
    "complete": "false: its end was not captured",
    "packets": "TCP packets that carry it",
}
DELIVERIES_ROW = "a publication by MQTT and a node that received it"
DELIVERIES_COLUMNS = {
    "digest": "64 bits of BLAKE2b of the payload",
    "occurrence": "number among the publications with this topic and payload",
    "receiver": "node that received it, and is no broker",
    "qos": "quality of service toward the receiver",
    "retain": "the flag RETAIN toward the receiver",
    "sent_first_ns": "first byte on the publisher's link",
    "received_last_ns": "last byte on the receiver's link",
    "delay_s": "between these two",
    "sure": "the receiver got as many equal publications as were sent; if not, the pair may be wrong",
}
Row = dict[str, Any]


def deliveries(packets: pa.Table) -> pa.Table:
    """Each arrival at a node that is not a broker and did not forward it, with the time since it left its publisher.

    A broker is a node that sends CONNACK: a publication that it could not forward is not a delivery to the broker.
    """
    kind = pc.field("kind")
    whole = (kind == "PUBLISH") & pc.field("complete") & pc.field("digest").is_valid()
    rows = _without_repetitions(packets.filter(whole).to_pylist())
    sent = [row for row in rows if row["direction"] == "up" and row["link"] == row["src"]]
    came = [row for row in rows if row["direction"] == "down" and row["link"] == row["dst"]]
    had = _earliest(came, "dst", "last_ns")
    began = _earliest(sent, "src", "first_ns")
    forwarded = {at for at, first_ns in began.items() if at in had and had[at] <= first_ns}
    first = _numbered(
        _at_broker([row for row in sent if _at(row, "src") not in forwarded], came),
        lambda row: row["at_broker_ns"],
        _same,
    )
    brokers = set(packets.filter(kind == "CONNACK")["src"].to_pylist())
    received = [
        row for row in came if row["dst"] not in brokers and _at(row, "dst") not in forwarded
    ]
    arrived = _numbered(received, lambda row: row["last_ns"], lambda row: _at(row, "dst"))
    published = {(_same(row), row["occurrence"]): row for row in first}
    pairs = [
        (start, row)
        for row in arrived
        if (start := published.get((_same(row), row["occurrence"]))) is not None
    ]
    return pa.Table.from_pylist([_delivery(*pair) for pair in pairs], DELIVERIES_SCHEMA)


def _delivery(start: Row, end: Row) -> Row:
    return {
        **{
            name: end[name]
            for name in ("topic", "digest", "occurrence", "payload_bytes", "qos", "retain")
        },
        "origin": start["src"],
        "receiver": end["dst"],
        "sent_first_ns": start["first_ns"],
        "received_last_ns": end["last_ns"],
        "delay_s": (end["last_ns"] - start["first_ns"]) / 1e9,
        "sure": start["alike"] == end["alike"],
    }


def _same(row: Row) -> tuple[str, str]:
    """What equal publications have in common."""
    return row["topic"], row["digest"]


def _at(row: Row, end: str) -> tuple[str, str, str]:
    return (*_same(row), row[end])


def _earliest(rows: Iterable[Row], end: str, moment: str) -> dict[tuple[str, str, str], int]:
    """When each node sent or received the first of equal publications."""
    found: dict[tuple[str, str, str], int] = {}
    for row in rows:
        at = _at(row, end)
        found[at] = min(found.get(at, row[moment]), row[moment])
    return found


def _without_repetitions(published: Iterable[Row]) -> list[Row]:
    """Each publication once on each link: one marked DUP counts only if there is no earlier one.

    With a packet id (QoS 1 and 2) it repeats the one with the same id.
    """
    on_link = ("link", "direction", "src", "dst", "packet_id")
    numbered = _numbered(
        published,
        lambda row: row["last_ns"],
        lambda row: (*_same(row), *(row[name] for name in on_link)),
    )
    return [row for row in numbered if not row["dup"] or row["occurrence"] == 1]


def _at_broker(sent: Iterable[Row], came: Iterable[Row]) -> list[Row]:
    """Add the time at which each arrived at the broker; TCP keeps the order on the way."""

    def way(row: Row) -> tuple[str, ...]:
        return (*_same(row), row["src"], row["dst"])

    there = {
        (way(row), row["occurrence"]): row["last_ns"]
        for row in _numbered(came, lambda row: row["last_ns"], way)
    }
    return [
        {**row, "at_broker_ns": there.get((way(row), row["occurrence"]), row["last_ns"])}
        for row in _numbered(sent, lambda row: row["first_ns"], way)
    ]


def _numbered(
    rows: Iterable[Row], moment: Callable[[Row], int], group: Callable[[Row], Hashable]
) -> list[Row]:
    """Number the rows of each group in the order of time (`occurrence`), and count them (`alike`)."""
    groups: defaultdict[Hashable, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=moment):
        groups[group(row)].append(row)
    return [
        {**row, "occurrence": number, "alike": len(alike)}
        for alike in groups.values()
        for number, row in enumerate(alike, start=1)
    ]
