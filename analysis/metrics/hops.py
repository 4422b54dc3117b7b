"""hops: one row for each overlay link (src -> dst) that a message crossed, or began to cross, as its n-th hop.

    ready        sent_first         sent_last               received_last
      |  waited_s   |    sending_s     |      crossing_s          |
      +-------------+------------------+--------------------------+
      at src         first byte         last byte                  all bytes
                     on src's link      on src's link              on dst's link

`ready` is the publish time at the origin, elsewhere the arrival of the previous hop (a node may receive a message again
by a longer path, and send it only then). So the parts of all hops of a path add up to the delay. So do the parts by
cause (`delay_parts`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.metrics.delay_parts import Paths, with_parts
from analysis.metrics.tables import (
    conform,
    count,
    grouped,
    message_bytes,
    own_links,
    schema,
    where,
)
from nodes.protocol.wire import REPEATED

SCHEMA = schema("""
    id string, src string, dst string, origin string, topic string, priority int, hops int, payload_bytes long,
    published_ns long, ready_ns long, sent_first_ns long, sent_last_ns long, received_first_ns long,
    received_last_ns long, copies long, waited_s double, sending_s double, crossing_s double,
    stream_bytes long, packets double, queue_s double, transmission_s double, propagation_s double,
    retransmission_s double, sent long, repeated long
""")
ROW = "a message on an overlay link, as its n-th hop"
COLUMNS = {
    "src": "sender of this hop",
    "dst": "receiver of this hop",
    "hops": "number of this hop; 1: from the origin",
    "ready_ns": "publication (at the origin), or arrival of the previous hop",
    "sent_first_ns": "first byte on the sender's link",
    "sent_last_ns": "last byte on the sender's link",
    "received_first_ns": "first byte on the receiver's link",
    "received_last_ns": "all bytes on the receiver's link",
    "copies": "complete copies that arrived",
    "waited_s": "from `ready_ns` to `sent_first_ns`",
    "sending_s": "from `sent_first_ns` to `sent_last_ns`",
    "crossing_s": "from `sent_last_ns` to `received_last_ns`",
    "stream_bytes": "bytes on the sender's link: payload, header, frames, labels",
    "packets": "TCP packets on the sender's link; a joined publication has its share",
    "sent": "copies that were sent",
    "repeated": "copies that were marked as repetitions",
}
# The columns of `messages` that are needed.
NEEDED = [
    *("link", "direction", "src", "dst", "kind", "priority", "hops", "origin", "id", "topic"),
    *("payload_bytes", "published_ns", "first_ns", "last_ns", "complete", "websocket_bytes"),
    *("header_bytes", "packets", "label_bytes", "flags", "joined", "stalled_ns", "repeated_ns"),
]
SAME = ("id", "origin", "topic", "priority", "published_ns")  # in all sightings of a message


def published(messages: pa.Table, from_ns: int = 0) -> pa.Table:
    """The sightings of publications since this time, with the columns NEEDED."""
    chosen = (pc.field("kind") == "PUBLISH") & (pc.field("published_ns") >= from_ns)
    return messages.filter(chosen).select(NEEDED)


def hops(sightings: pa.Table, paths: Paths | None = None) -> pa.Table:
    """Join sightings on the sender's link with those on the receiver's. All sightings of a message must be there.

    `sightings`: of publications (`published`). Without `paths` the parts by cause are null.
    `copies`: complete copies that arrived; `sent`: copies that were sent, and `repeated`: those marked as repetitions.
    `stream_bytes` and `packets`: on the sender's link; a joined publication has its share of the packets.
    """
    # A message may also cross routers' links; a hop is from the sender's link to the receiver's.
    up, down = own_links(sightings)
    whole = pc.fill_null(sightings["complete"], False)
    came, first, last = pc.and_(down, whole), sightings["first_ns"], sightings["last_ns"]
    flags = pc.fill_null(sightings["flags"], 0)  # traces of earlier versions have no flags
    marked = pc.not_equal(pc.bit_wise_and(flags, int(REPEATED)), 0)
    joined = pc.fill_null(sightings["joined"], 1)
    columns = {
        **{name: sightings[name] for name in (*SAME, "src", "dst", "hops", "payload_bytes")},
        "sent_first_ns": where(up, first),
        "sent_last_ns": where(pc.and_(up, whole), last),
        "received_first_ns": where(down, first),
        "received_last_ns": where(came, last),
        "copies": count(came),
        "sent": count(up),
        "repeated": count(pc.and_(up, marked)),
        "stream_bytes": message_bytes(sightings),
        "packets": pc.divide(sightings["packets"].cast(pa.float64()), joined.cast(pa.float64())),
        "stalled_ns": where(came, sightings["stalled_ns"]),
        "repeated_up_ns": where(up, sightings["repeated_ns"]),
        "repeated_down_ns": where(down, sightings["repeated_ns"]),
    }
    # The first complete copy decides how long its gaps delayed it.
    rows = pa.table(columns).sort_by([("received_last_ns", "ascending")])
    aggregates = {
        **dict.fromkeys(("payload_bytes", "stream_bytes", "packets"), "max"),
        **dict.fromkeys(("repeated_up_ns", "repeated_down_ns"), "max"),
        **dict.fromkeys(("copies", "sent", "repeated"), "sum"),
        **dict.fromkeys(("sent_first_ns", "sent_last_ns"), "min"),
        **dict.fromkeys(("received_first_ns", "received_last_ns"), "min"),
        "stalled_ns": "first",
    }
    crossed = grouped(
        rows,
        [*SAME, "src", "dst", "hops"],
        **{name: (name, function) for name, function in aggregates.items()},
    )
    return _timed(with_parts(_with_ready(crossed), paths))


def _with_ready(crossed: pa.Table) -> pa.Table:
    """Add `ready_ns`: at the origin the publish time, elsewhere the first arrival by the previous hop."""
    arrived = grouped(crossed, ["id", "dst", "hops"], came_ns=("received_last_ns", "min"))
    before = pa.table(
        {
            "id": arrived["id"],
            "src": arrived["dst"],
            "hops": pc.add(arrived["hops"], pa.scalar(1, pa.int32())),
            "came_ns": arrived["came_ns"],
        }
    )
    joined = crossed.join(before, ["id", "src", "hops"], join_type="left outer")
    own = pc.equal(joined["src"], joined["origin"])
    ready = pc.if_else(own, joined["published_ns"], joined["came_ns"])
    order = [("published_ns", "ascending"), *((name, "ascending") for name in ORDER)]
    return joined.append_column("ready_ns", ready).sort_by(order)


ORDER = ("id", "hops", "src", "dst")


def _timed(parted: pa.Table) -> pa.Table:
    """Add the times between the moments of a hop."""
    for name, begin, end in (
        ("waited_s", "ready_ns", "sent_first_ns"),
        ("sending_s", "sent_first_ns", "sent_last_ns"),
        ("crossing_s", "sent_last_ns", "received_last_ns"),
    ):
        between = pc.subtract(parted[end], parted[begin]).cast(pa.float64())
        parted = parted.append_column(name, pc.divide(between, 1e9))
    return conform(parted, SCHEMA)


def on_path(
    delivery: Mapping[str, Any], hops: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any] | None, ...]:
    """The message's hops along the path to this receiver, which may cross a link twice."""
    own = {
        (hop["src"], hop["dst"], hop["hops"]): hop for hop in hops if hop["id"] == delivery["id"]
    }
    pairs = list(pairwise(delivery["path"] or ()))
    first = (delivery["hops"] or 0) - len(pairs) + 1
    return tuple(own.get((*pair, number)) for number, pair in enumerate(pairs, start=first))
