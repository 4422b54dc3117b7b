"""control: messages other than publications that each node sent and received, by kind; overlay messages by their kinds.

`wire_bytes`: all bytes of a message on a node's link: its own, its frames and labels, and its share of packet headers.
A packet with several messages counts for each of them, so on each link and direction the headers are scaled to the
actual number of packets. Pure acknowledgements are left out.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from analysis.metrics.overhead import header_bytes
from analysis.metrics.tables import message_bytes, own_links, schema, summed
from analysis.protocols.overlay_messages import CARRIED_KINDS, OVERLAY_KINDS

SCHEMA = schema("""
    node string, direction string, between_brokers boolean, kind string, overlay_kind string, carried_kind string,
    messages long, message_bytes long, wire_bytes double, bytes_per_s double
""")
ROW = "a node, direction, kind of control message, and kind of overlay message"
COLUMNS = {
    "node": "node",
    "direction": "`up`: the node sent it; `down`: it received it",
    "between_brokers": "both ends are brokers",
    "kind": "kind of control message",
    "overlay_kind": "of OVERLAY: the kind of the overlay's message",
    "carried_kind": "what the method says in it",
    "messages": "how many",
    "message_bytes": "their own bytes, with frames and labels",
    "wire_bytes": "the same with their share of packet headers",
    "bytes_per_s": "`wire_bytes` as average over the time that counts",
}
GROUP = ("link", "direction", "between_brokers", "kind", "overlay_kind", "carried_kind")
SUMS = ("messages", "message_bytes", "packets")
SENT = ("link", "direction")


class Counted(NamedTuple):
    """Sums over messages: of the control messages by GROUP, and of the packets of all messages by SENT."""

    control: pa.Table
    packets: pa.Table


def count_control(
    messages: pa.Table, brokers: Collection[str], begin_ns: int, end_ns: int
) -> Counted:
    """Sum the control messages that began in this time, and the packets of all messages."""
    own = messages.filter(pc.or_(*own_links(messages)))
    packets = own["packets"].cast(pa.int64())
    central = pa.array(sorted(brokers), pa.string())
    both = pc.and_(pc.is_in(own["src"], central), pc.is_in(own["dst"], central))
    rows = pa.table(
        {
            **{name: own[name] for name in GROUP if name != "between_brokers"},
            "between_brokers": both,
            "first_ns": own["first_ns"],
            "messages": pa.repeat(pa.scalar(1, pa.int64()), own.num_rows),
            "message_bytes": message_bytes(own),
            "packets": packets,
        }
    )
    first = pc.field("first_ns")
    chosen = (pc.field("kind") != "PUBLISH") & (first >= begin_ns) & (first <= end_ns)
    return Counted(summed(rows.filter(chosen), GROUP, SUMS), summed(rows, SENT, ["packets"]))


def control(counted: Counted, links: pa.Table, begin_ns: int, end_ns: int) -> pa.Table:
    """The control messages of this time by kind; `bytes_per_s` is their average over it."""
    headers = _headers_of_a_packet(links, counted.packets)
    seconds = max((end_ns - begin_ns) / 1e9, 1e-9)
    rows = []
    for row in summed(counted.control, GROUP, SUMS).to_pylist():
        header = headers.get((row["link"], row["direction"]))
        if header is not None:
            wire_bytes = row["message_bytes"] + row.pop("packets") * header
            named = {
                "node": row.pop("link"),
                "overlay_kind": _named(row.pop("overlay_kind"), OVERLAY_KINDS),
                "carried_kind": _named(row.pop("carried_kind"), CARRIED_KINDS),
            }
            rows.append(
                {**row, **named, "wire_bytes": wire_bytes, "bytes_per_s": wire_bytes / seconds}
            )
    return pa.Table.from_pylist(rows, SCHEMA)


def _headers_of_a_packet(links: pa.Table, packets: pa.Table) -> dict[tuple[str, str], float]:
    """Bytes of packet headers for each packet of a message, scaled to the actual number of packets."""
    touched = {
        (row["link"], row["direction"]): row["packets"]
        for row in summed(packets, SENT, ["packets"]).to_pylist()
    }
    actual = {
        (row["link"], row["direction"]): row["data_packets"]
        for row in links.select([*SENT, "data_packets"]).to_pylist()
    }
    return {
        place: min(1.0, actual[place] / touched[place]) * size
        for place, size in header_bytes(links).items()
        if touched.get(place)
    }


def _named(number: int | None, names: Mapping[int, str]) -> str | None:
    """The name of a number; without a name, the number itself."""
    return None if number is None else names.get(number, str(number))
