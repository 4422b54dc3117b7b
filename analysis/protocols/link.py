"""From one link's capture to the messages on it and their cost. Pure: packets in, tables out.

Packets are added window by window, in the order of the file, and a flow is released as soon as possible: memory does
not grow with the file. A link's file holds all of its streams, so files are independent of each other. A big file is
divided by connections (`shard` of `shards`).
"""

import zlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.captures.packets import ACK, FIN, RST, SYN, Packets
from analysis.protocols.connection import CLOSED_NS, Direction
from analysis.protocols.messages import LinkPlace
from analysis.protocols.stream_reader import Sink, StreamSink
from analysis.protocols.udp import DATAGRAMS, Datagrams

Array = npt.NDArray[Any]

# Totals of a link and direction: the columns, and everything that can be counted without reading streams.


# The *_bytes of the layers add up to wire_bytes.
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
                "udp_acks_bytes",
                "other_bytes",
                "tcp_packets",
                "data_packets",
                "ack_packets",
                "retransmitted_packets",
                "retransmitted_payload",
                "reordered_packets",
                "udp_ack_packets",
                "other_packets",
                "connections",
                "publish_messages",
                "control_messages",
                "compressed_messages",
                "orphan_pieces",
                "missing_bytes",
                "lost_tail_bytes",
                "mqtt_bytes",
                "mqtt_messages",
                "mqtt_control",
                "datagrams_bytes",
                "datagram_packets",
                "compressed_streams",
            )
        ),
    ]
)
COUNTS = tuple(field.name for field in TOTALS if field.name not in ("link", "direction"))


def packet_totals(packets: Packets, chosen: Array) -> dict[str, int]:
    """Count the chosen packets."""
    tcp, datagrams = chosen & packets.is_tcp, chosen & packets.is_udp
    other = chosen & ~tcp & ~datagrams
    wire = packets.wirelen
    ethernet = wire[tcp] - packets.ip_len[tcp]  # header, and padding of short frames
    quiet = packets.flags & (SYN | FIN | RST) == 0
    return {
        "packets": int(chosen.sum()),
        "wire_bytes": int(wire[chosen].sum()),
        "ethernet_bytes": int(ethernet.sum()),
        "ip_bytes": int(packets.ip_header[tcp].sum()),
        "tcp_bytes": int(packets.tcp_header[tcp].sum()),
        "datagrams_bytes": int(wire[datagrams].sum()),
        "other_bytes": int(wire[other].sum()),
        "tcp_packets": int(tcp.sum()),
        "data_packets": int((tcp & (packets.payload_len > 0)).sum()),
        "ack_packets": int(
            (tcp & quiet & (packets.payload_len == 0) & (packets.flags & ACK > 0)).sum()
        ),
        "datagram_packets": int(datagrams.sum()),
        "other_packets": int(other.sum()),
    }


Ends = tuple[int, int, int, int]  # addresses and ports: from, to
Key = tuple[str, Ends]  # one direction of a connection
UP, DOWN = "up", "down"


class LinkRead(NamedTuple):
    """The result for a link, as Arrow arrays."""

    sightings: pa.StructArray  # SIGHTING
    totals: pa.StructArray  # TOTALS, of both directions
    mqtt: pa.StructArray  # MQTT
    datagrams: pa.StructArray  # DATAGRAMS


def read_link(packets: Packets, place: LinkPlace, shard: int = 0, shards: int = 1) -> LinkRead:
    """Read a whole file at once: all messages and totals."""
    reader = LinkReader(place, shard, shards)
    reader.add(packets)
    return reader.finish()


def upward(packets: Packets, place: LinkPlace) -> Array:
    """Which packets the link's own node sent: by IP address if the packet has one, else by MAC address."""
    sent: Array = packets.eth_src == place.mac
    if not place.shared:
        own = packets.ip_src == place.address
        addressed = packets.ip_src + packets.ip_dst > 0
        if not sent.any():  # the network card of a board, whose MAC address we did not assign
            sent = np.isin(packets.eth_src, np.unique(packets.eth_src[own & addressed]))
        sent = np.where(addressed, own, sent)
    return sent


class LinkReader:
    """Reads the capture of one link."""

    def __init__(self, place: LinkPlace, shard: int = 0, shards: int = 1) -> None:
        self.place = place
        self._shard, self._shards = shard, shards
        self._sink = Sink(place)
        self._totals = {direction: dict.fromkeys(COUNTS, 0) for direction in (UP, DOWN)}
        self._streams: dict[Key, Direction] = {}
        self._datagrams = Datagrams()
        self._now_ns = 0

    def add(self, packets: Packets) -> None:
        """Add the next packets of the file."""
        self._now_ns = max(self._now_ns, int(packets.ts_ns.max(initial=0)))
        flow, ends = flows(packets)
        parts = np.array([shard_of(one, self._shards) for one in ends], np.int64)
        mine = np.where(packets.is_tcp, parts[flow] == self._shard, self._shard == 0)
        up = upward(packets, self.place)
        for direction, chosen in ((UP, up & mine), (DOWN, ~up & mine)):
            total = self._totals[direction]
            for name, count in packet_totals(packets, chosen).items():
                total[name] += count
            for which in by_flow(flow, np.flatnonzero(chosen & packets.is_tcp)):
                self._segments(packets, which, direction, ends[flow[which[0]]])
            for which in by_flow(flow, np.flatnonzero(chosen & packets.is_udp)):
                self._datagrams.add(packets, which, direction, ends[flow[which[0]]])
        for which in by_flow(flow, np.flatnonzero(mine & packets.is_tcp)):
            self._acknowledge(packets, which, ends[flow[which[0]]])
        if self._shard == 0:
            self._totals[UP]["lost_tail_bytes"] += packets.lost_bytes
            self._datagrams.connected(ends[one] for one in np.unique(flow[packets.is_tcp]).tolist())

    def _segments(self, packets: Packets, which: Array, direction: str, ends: Ends) -> None:
        """Add packets of a flow; a new connection on the same ports ends the one before."""
        key = (direction, ends)
        for part in _incarnations(packets, which, self._streams.get(key)):
            stream = self._streams.get(key)
            opens = packets.flags[part[0]] & SYN
            if stream is None or _is_another(packets, int(part[0]), stream):
                if stream is not None:
                    stream.finish(self._peer(key))
                output = StreamSink(
                    self._sink, direction, ends[0], ends[1], self._totals[direction]
                )
                opening = int(packets.seq[part[0]]) if opens else None
                stream = self._streams[key] = Direction(opening, output)
            stream.add(packets, part)

    def _acknowledge(self, packets: Packets, which: Array, ends: Ends) -> None:
        numbers = packets.ack[which[packets.flags[which] & ACK > 0]]
        for direction in (UP, DOWN):
            if stream := self._streams.get((direction, _back(ends))):
                stream.acknowledged(numbers)

    def _peer(self, key: Key) -> Direction | None:
        """The other direction of the same connection."""
        return self._streams.get(_other(key))

    def end_window(self) -> None:
        """Copy what is still needed of the window's data, and release what has been processed."""
        for key in [key for key, stream in self._streams.items() if stream.is_over(self._now_ns)]:
            both = [self._streams.get(key), self._peer(key)]
            if all(stream is None or stream.is_over(self._now_ns) for stream in both):
                self._finish(key)
        for key, stream in self._streams.items():
            stream.end_window(self._peer(key))

    def _finish(self, key: Key) -> None:
        """Finish both directions of a connection."""
        other = _other(key)
        for one, back in ((key, other), (other, key)):
            if stream := self._streams.get(one):
                stream.finish(self._streams.get(back))
        self._streams.pop(key, None)
        self._streams.pop(other, None)

    def read_so_far(self) -> tuple[pa.StructArray, pa.StructArray]:
        """Return and release the sightings and the MQTT packets since the last call."""
        return self._sink.take()

    @property
    def held(self) -> int:
        """Bytes of streams that are still held."""
        return sum(stream.held for stream in self._streams.values())

    def finish(self) -> LinkRead:
        """Finish all streams after the last packets."""
        while self._streams:
            self._finish(next(iter(self._streams)))
        rows = self._datagrams.rows()
        for row in rows:
            total = self._totals[row["direction"]]
            total["udp_ack_packets"] += row["udp_acks"]
            total["udp_acks_bytes"] += (size := row.pop("udp_acks_bytes"))
            total["datagram_packets"] -= row["udp_acks"]
            total["datagrams_bytes"] -= size
            row |= {"link": self.place.name}
            row |= {end: self.place.name_of(row[end]) for end in ("src", "dst")}
        totals = [
            {"link": self.place.name, "direction": direction, **total}
            for direction, total in self._totals.items()
        ]
        sightings, mqtt = self._sink.take()
        return LinkRead(sightings, pa.array(totals, TOTALS), mqtt, pa.array(rows, DATAGRAMS))


def flows(packets: Packets) -> tuple[Array, list[Ends]]:
    """A flow number for each packet, and the ends of each flow."""
    addresses = packets.ip_src << 32 | packets.ip_dst
    _, pair = np.unique(addresses, return_inverse=True)
    ports = packets.src_port << 16 | packets.dst_port
    _, first, flow = np.unique(pair << 32 | ports, return_index=True, return_inverse=True)
    columns = (packets.ip_src, packets.ip_dst, packets.src_port, packets.dst_port)
    return flow, list(zip(*(column[first].tolist() for column in columns), strict=True))


def by_flow(flow: Array, chosen: Array) -> list[Array]:
    """The positions of the chosen packets, one array for each flow, in capture order."""
    if not len(chosen):
        return []
    numbers = flow[chosen]
    order = np.argsort(numbers, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    return np.split(chosen[order], borders)


def shard_of(ends: Ends, shards: int) -> int:
    """The shard to which both directions of a connection belong."""
    if shards == 1:
        return 0
    one, other = sorted(((ends[0], ends[2]), (ends[1], ends[3])))
    return zlib.crc32(repr((one, other)).encode()) % shards


def _other(key: Key) -> Key:
    """The other direction of a connection."""
    return DOWN if key[0] == UP else UP, _back(key[1])


def _back(ends: Ends) -> Ends:
    source, target, source_port, target_port = ends
    return target, source, target_port, source_port


def _incarnations(packets: Packets, which: Array, known: Direction | None) -> list[Array]:
    """Split a flow's packets where another connection may begin: at each SYN, and long after an end."""
    flags, ts_ns = packets.flags[which], packets.ts_ns[which]
    ended = np.logical_or.accumulate(flags & (FIN | RST) > 0)
    pauses = np.diff(ts_ns, prepend=ts_ns[:1]) > CLOSED_NS
    pauses[1:] &= ended[:-1] | bool(known and known.closed)
    begins = np.flatnonzero((flags & SYN > 0) | pauses)
    return np.split(which, begins[begins > 0])


def _is_another(packets: Packets, first: int, known: Direction) -> bool:
    """Whether a connection on the same ports begins with this packet."""
    if known.is_over(int(packets.ts_ns[first])):
        return True
    return bool(packets.flags[first] & SYN) and known.opening != int(packets.seq[first])
