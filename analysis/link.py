"""One link's capture to what was seen on it: each message, and what it all cost. Pure: bytes in, tables out.

A link's file holds all of its streams, so files are independent of each other; a big file can be divided further
(`shard` of `shards`), each part taking its share of the connections.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.messages import LinkPlace, Sightings, read_messages
from analysis.pcap import ACK, FIN, RST, SYN, Packets
from analysis.stream import Stream
from analysis.streams import reassemble
from analysis.websocket import walk

Array = npt.NDArray[Any]

UP, DOWN = "up", "down"

# What a link and direction cost. The *_bytes of the layers add up to wire_bytes.
TOTALS = pa.struct(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        *(
            (name, pa.int64())
            for name in (
                "packets",
                "wire_bytes",
                "ethernet_bytes",
                "ip_bytes",
                "tcp_bytes",
                "retransmitted_bytes",
                "websocket_bytes",
                "label_bytes",
                "header_bytes",
                "payload_bytes",
                "control_bytes",
                "unread_bytes",
                "answers_bytes",
                "other_bytes",
                "tcp_packets",
                "data_packets",
                "ack_packets",
                "retransmitted_packets",
                "retransmitted_payload",
                "reordered_packets",
                "answer_packets",
                "other_packets",
                "connections",
                "publish_messages",
                "control_messages",
                "compressed_messages",
                "orphan_pieces",
                "missing_bytes",
                "lost_tail_bytes",
            )
        ),
    ]
)


def read_link(
    packets: Packets, place: LinkPlace, shard: int = 0, shards: int = 1
) -> tuple[pa.StructArray, pa.StructArray]:
    """The sightings of messages, and the totals of both directions."""
    up = upward(packets, place)
    flow = _flows(packets)
    mine = np.where(packets.is_tcp, flow % shards == shard, shard == 0)
    answers = _answers(packets)
    totals = {}
    seen = Sightings(place)
    for direction, chosen in ((UP, up & mine), (DOWN, ~up & mine)):
        totals[direction] = _packet_totals(packets, chosen, answers)
        totals[direction]["lost_tail_bytes"] = (
            packets.lost_bytes if direction == UP and shard == 0 else 0
        )
        for which in _by_flow(flow, np.flatnonzero(chosen & packets.is_tcp)):
            for part in _incarnations(packets, which):
                _connection(packets, part, direction, seen, totals[direction])
    rows = [
        {"link": place.name, "direction": direction, **total} for direction, total in totals.items()
    ]
    return seen.struct_array(), pa.array(rows, TOTALS)


def upward(packets: Packets, place: LinkPlace) -> Array:
    """Which packets the link's own node sent: by its address if they have one that could be its own."""
    sent: Array = packets.eth_src == place.mac
    if not place.shared:
        addressed = packets.ip_src + packets.ip_dst > 0
        sent = np.where(addressed, packets.ip_src == place.address, sent)
    return sent


def _flows(packets: Packets) -> Array:
    """A number for each packet's (source, destination, ports)."""
    addresses = packets.ip_src << 32 | packets.ip_dst
    _, pair = np.unique(addresses, return_inverse=True)
    ports = packets.src_port << 16 | packets.dst_port
    _, flow = np.unique(pair << 32 | ports, return_inverse=True)
    return flow


def _by_flow(flow: Array, chosen: Array) -> list[Array]:
    """The chosen packets' positions, one array a flow, each in capture order."""
    if not len(chosen):
        return []
    numbers = flow[chosen]
    order = np.argsort(numbers, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(chosen[order], borders)


def _incarnations(packets: Packets, which: Array) -> list[Array]:
    """A flow's packets, divided where a new connection on the same ports begins."""
    opening = which[packets.flags[which] & SYN > 0]
    if len(opening) <= 1:
        return [which]
    fresh = opening[1:][np.diff(packets.seq[opening]) != 0]
    return np.split(which, np.searchsorted(which, fresh)) if len(fresh) else [which]


def _answers(packets: Packets) -> Array:
    """Which packets say that a chunk has come: one byte by UDP between the two ends of a TCP connection."""
    single: Array = packets.is_udp & (packets.payload_len == 1)
    if not single.any():
        return single
    source = packets.ip_src << 16 | packets.src_port
    target = packets.ip_dst << 16 | packets.dst_port
    ends = np.stack((np.minimum(source, target), np.maximum(source, target)), axis=1)
    either = single | packets.is_tcp
    _, connection = np.unique(ends[either], axis=0, return_inverse=True)
    answers = np.zeros(len(single), bool)
    answers[either] = np.isin(connection, connection[packets.is_tcp[either]])
    answers &= single
    return answers


def _packet_totals(packets: Packets, chosen: Array, answers: Array) -> dict[str, int]:
    """Everything that can be counted without looking into streams."""
    tcp, answers = chosen & packets.is_tcp, chosen & answers
    other = chosen & ~tcp & ~answers
    wire = packets.wirelen
    ethernet = wire[tcp] - packets.ip_len[tcp]  # header, and padding of short frames
    quiet = packets.flags & (SYN | FIN | RST) == 0
    total = {
        name: 0 for name in (field.name for field in TOTALS) if name not in ("link", "direction")
    }
    total |= {
        "packets": int(chosen.sum()),
        "wire_bytes": int(wire[chosen].sum()),
        "ethernet_bytes": int(ethernet.sum()),
        "ip_bytes": int(packets.ip_header[tcp].sum()),
        "tcp_bytes": int(packets.tcp_header[tcp].sum()),
        "answers_bytes": int(wire[answers].sum()),
        "other_bytes": int(wire[other].sum()),
        "tcp_packets": int(tcp.sum()),
        "data_packets": int((tcp & (packets.payload_len > 0)).sum()),
        "ack_packets": int(
            (tcp & quiet & (packets.payload_len == 0) & (packets.flags & ACK > 0)).sum()
        ),
        "answer_packets": int(answers.sum()),
        "other_packets": int(other.sum()),
    }
    return total


def _connection(
    packets: Packets, which: Array, direction: str, seen: Sightings, total: dict[str, int]
) -> None:
    """One direction of one connection: its stream, its messages, its share of the totals."""
    flags = packets.flags[which]
    openings, closings = flags & SYN > 0, flags & FIN > 0
    first = which[openings]
    loaded = which[(packets.payload_len[which] > 0) & ~openings]
    opening = int(packets.seq[first[0]] + 1) & 0xFFFFFFFF if len(first) else None
    stream = reassemble(
        packets.data,
        packets.seq[loaded],
        packets.payload_len[loaded],
        packets.payload_seen[loaded],
        packets.payload_at[loaded],
        packets.ts_ns[loaded],
        opening,
    )
    bare_fins = int((closings & (packets.payload_len[which] == 0)).sum())
    total["connections"] += int(len(first) > 0 or len(loaded) > 0)
    total["retransmitted_packets"] += (
        stream.retransmitted + max(0, len(first) - 1) + max(0, bare_fins - 1)
    )
    total["retransmitted_payload"] += stream.retransmitted_payload
    total["reordered_packets"] += stream.reordered
    sent = int(packets.payload_len[which].sum())
    fresh = stream.covered_bytes
    total["retransmitted_bytes"] += sent - fresh - stream.stray
    total["unread_bytes"] += fresh + stream.stray
    if fresh < len(stream.data):
        end = len(stream.data) if opening is None else _taken(packets, which, opening, stream)
        total["missing_bytes"] += end - int(stream.covered(np.array([0]), np.array([end]))[0])
    if fresh:
        sample = loaded[0]
        _messages(
            stream, int(packets.ip_src[sample]), int(packets.ip_dst[sample]), direction, seen, total
        )


def _taken(packets: Packets, which: Array, opening: int, stream: Stream) -> int:
    """How much of the stream the other side has acknowledged: where a node dies, the rest never came anywhere."""
    one = which[0]
    back = (
        packets.is_tcp
        & (packets.ip_src == packets.ip_dst[one])
        & (packets.ip_dst == packets.ip_src[one])
        & (packets.src_port == packets.dst_port[one])
        & (packets.dst_port == packets.src_port[one])
        & (packets.flags & ACK > 0)
    )
    back[:one] = False
    taken = (packets.ack[back] - opening) & 0xFFFFFFFF
    within = taken[taken <= len(stream.data) + 1]  # others are of a connection on the same ports
    return min(int(within.max(initial=0)), len(stream.data))


def _messages(
    stream: Stream, source: int, target: int, direction: str, seen: Sightings, total: dict[str, int]
) -> None:
    """Read the stream's frames; what could be read moves from `unread` to its own layer."""
    found = walk(stream.data, stream.unknown, stream.from_start)
    messages = read_messages(stream, found)
    seen.add(messages, direction, source, target)
    control = int(
        sum(
            stream.covered(np.array([begin]), np.array([min(end, len(stream.data))]))[0]
            for begin, end in found.control_frames
        )
    )
    handshake = int(stream.covered(np.array([0]), np.array([found.handshake]))[0])
    publish = messages.is_publish
    read = {
        "websocket_bytes": handshake + control + int(messages.frame_bytes.sum()),
        "label_bytes": int(messages.label_bytes.sum()),
        "header_bytes": int(messages.header_bytes[publish].sum()),
        "payload_bytes": int(messages.payload_seen[publish].sum()),
        "control_bytes": int(
            messages.header_bytes[~publish].sum() + messages.payload_seen[~publish].sum()
        ),
    }
    for name, size in read.items():
        total[name] += size
        total["unread_bytes"] -= size
    total["publish_messages"] += int(publish.sum())
    total["control_messages"] += int((~publish).sum())
    total["compressed_messages"] += messages.compressed
    total["orphan_pieces"] += messages.orphan_pieces
