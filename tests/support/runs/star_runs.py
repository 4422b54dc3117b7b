"""Run folders made up byte by byte, with the truth known: for tests and benchmarks of the analysis.

A `Connection` carries the packets of one TCP connection between two nodes past both of their capture points (up on the
sender's link, down on the receiver's). The caller decides what happens to each packet: nothing, a loss, or a delay.
"""

import ipaddress
import json
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from nodes.protocol import wire

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
UPGRADE = b"GET / HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Passing:
    """The fate of one packet: seen on the sender's link, seen on the receiver's, and this much later than usual."""

    up: bool = True
    down: bool = True
    late_ns: int = 0


WELL = Passing()


@dataclass(frozen=True, slots=True)
class Host:
    """One end: name, number and address as the manifest gives them."""

    name: str
    number: int
    address: str

    @property
    def mac(self) -> bytes:
        return b"\x02\x74\x62" + self.number.to_bytes(3)


def frame(payload: bytes, mask: bytes = b"", first: int = 0x82) -> bytes:
    """One WebSocket frame."""
    flag, size = (0x80 if mask else 0), len(payload)
    if size < 126:
        head = bytes([first, flag | size])
    elif size < 1 << 16:
        head = bytes([first, flag | 126]) + size.to_bytes(2)
    else:
        head = bytes([first, flag | 127]) + size.to_bytes(8)
    if mask:
        payload = bytes(byte ^ mask[place & 3] for place, byte in enumerate(payload))
    return head + mask + payload


def frames(payload: bytes, cuts: Sequence[int], mask: bytes = b"") -> bytes:
    """A message split into frames at these places."""
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(payload)), len(payload)]
    pieces = [payload[a:b] for a, b in pairwise(edges)]
    out = b""
    for number, piece in enumerate(pieces):
        opcode = 0x02 if number == 0 else 0x00
        final = 0x80 if number == len(pieces) - 1 else 0
        out += frame(piece, mask, final | opcode)
    return out


def packet(
    source: Host,
    target: Host,
    ports: tuple[int, int],
    seq: int,
    ack: int,
    flags: int,
    payload: bytes,
) -> bytes:
    """Ethernet, IPv4 and TCP around a payload (checksums stay zero: no reader here checks them)."""
    tcp = struct.pack(
        "!HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 5 << 4, flags, 65535, 0, 0
    )
    size = 20 + len(tcp) + len(payload)
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        size,
        0,
        0,
        64,
        6,
        0,
        ipaddress.ip_address(source.address).packed,
        ipaddress.ip_address(target.address).packed,
    )
    return target.mac + source.mac + b"\x08\x00" + ip + tcp + payload


def arp(source: Host) -> bytes:
    """An ARP request, broadcast."""
    return b"\xff" * 6 + source.mac + b"\x08\x06" + bytes(28)


class Captures:
    """Packets per link, written as one pcap file each."""

    def __init__(self) -> None:
        self.records: dict[str, list[tuple[int, bytes]]] = defaultdict(list)

    def add(self, link: str, at_ns: int, data: bytes) -> None:
        self.records[link].append((at_ns, data))

    def pcap(self, link: str, order: str = "<", nano: bool = True, snaplen: int = 65535) -> bytes:
        """The file of a link, packets in the order of their time."""
        magic = 0xA1B23C4D if nano else 0xA1B2C3D4
        out = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, snaplen, 1)]
        for at_ns, data in sorted(self.records[link], key=lambda record: record[0]):
            seconds, rest = divmod(at_ns, 1_000_000_000)
            kept = data[:snaplen]
            part = rest if nano else rest // 1000
            out.append(struct.pack(order + "IIII", seconds, part, len(kept), len(data)) + kept)
        return b"".join(out)


Decide = Callable[[Host, int, bytes], Passing]


@dataclass
class Connection:
    """One TCP connection between two nodes, captured on both of their links."""

    captures: Captures
    client: Host
    server: Host
    decide: Decide = lambda _host, _number, _payload: WELL
    ports: tuple[int, int] = (40000, 8765)
    delay_ns: int = 5 * MS
    mss: int = 1460
    opening_seq: int = 1000
    sent: dict[str, int] = field(default_factory=dict)
    packets: int = 0

    def open(self, at_ns: int, asked: bytes = UPGRADE, answered: bytes = SWITCHED) -> None:
        """Send the three packets of the handshake, then the WebSocket upgrade, if wanted."""
        self.sent = {self.client.name: 0, self.server.name: 0}
        self._pass(self.client, at_ns, 0x02, b"", -1)
        self._pass(self.server, at_ns + 2 * self.delay_ns, 0x12, b"", -1)
        self._pass(self.client, at_ns + 4 * self.delay_ns, 0x10, b"", 0)
        self.send(self.client, asked, at_ns + 4 * self.delay_ns)
        self.send(self.server, answered, at_ns + 6 * self.delay_ns)

    def send(self, host: Host, data: bytes, at_ns: int, gap_ns: int = 100_000) -> int:
        """Send bytes from one end to the other, in as many packets as needed; return when the last one arrives."""
        arrived = at_ns
        for number, begin in enumerate(range(0, len(data), self.mss)):
            piece = data[begin : begin + self.mss]
            arrived = self._pass(host, at_ns + number * gap_ns, 0x18, piece, self.sent[host.name])
            self.sent[host.name] += len(piece)
        return arrived

    def resend(self, host: Host, piece: bytes, before_end: int, at_ns: int) -> int:
        """Send earlier bytes again, from `before_end` bytes before the end of the stream so far."""
        return self._pass(host, at_ns, 0x18, piece, self.sent[host.name] - before_end)

    def acknowledge(self, host: Host, at_ns: int) -> None:
        self._pass(host, at_ns, 0x10, b"", self.sent[host.name])

    def close(self, host: Host, at_ns: int) -> None:
        self._pass(host, at_ns, 0x11, b"", self.sent[host.name])

    def _pass(self, host: Host, at_ns: int, flags: int, payload: bytes, position: int) -> int:
        """Move one packet past both capture points; return when it is seen at the second."""
        here = host.name == self.client.name
        other = self.server if here else self.client
        ports = self.ports if here else (self.ports[1], self.ports[0])
        seq = self.opening_seq + 1 + position
        ack = self.opening_seq + 1 + self.sent[other.name]
        data = packet(host, other, ports, seq, ack, flags, payload)
        fate = self.decide(host, self.packets, payload)
        self.packets += 1
        up_ns = at_ns + self.delay_ns + fate.late_ns
        if fate.up:
            self.captures.add(host.name, up_ns, data)
        if fate.up and fate.down:
            self.captures.add(other.name, up_ns + self.delay_ns, data)
        return up_ns + self.delay_ns


@dataclass(frozen=True, slots=True)
class Publication:
    """A message of a made-up run."""

    sensor: int  # which sensor, from 0
    at_ms: int
    priority: int = 5
    topic: str = "landslide/alert"
    size: int = 200


@dataclass
class StarRun:
    """Sensors and subscribers around one broker; every message goes sensor -> broker -> each subscriber of its topic.

    `fate(publication number, src, dst)` may name the fate of a message on one hop: None (it arrives), "unsent" (no
    byte), "full" (no byte, and the sender's log records its full queue), "vanishes" (seen on the sender's link only),
    "partial" (its last packet never reaches the receiver), "twice" (sent again as a message of its own).
    `as_frames(message, mask)`: how a published message is written.
    """

    sensors: int = 2
    subscribers: int = 2
    topics: tuple[str, ...] = ("landslide/alert", "rain")
    publications: Sequence[Publication] = ()
    fate: Callable[[int, str, str], str | None] = lambda _number, _src, _dst: None
    decide: Decide = lambda _host, _number, _payload: WELL
    as_frames: Callable[[wire.Message, bytes], bytes] = lambda message, mask: frame(
        wire.encode(message), mask
    )
    forward_ns: int = 1 * MS
    delay_ns: int = 5 * MS

    def hosts(self) -> list[tuple[Host, str]]:
        names = [("broker", "broker")]
        names += [(f"sensor-{n + 1}", "sensor") for n in range(self.sensors)]
        names += [(f"town-{n + 1}", "subscriber") for n in range(self.subscribers)]
        return [
            (Host(name, number, f"10.77.0.{number}" if number < 256 else _address(number)), kind)
            for number, (name, kind) in enumerate(names, start=1)
        ]

    def write(self, folder: Path, **manifest: Any) -> "Written":
        """Write the run folder; return what really happened."""
        made = _Maker(self).make()
        (folder / "pcap").mkdir(parents=True)
        (folder / "logs").mkdir()
        for host, _ in self.hosts():
            (folder / "pcap" / f"{host.name}.pcap").write_bytes(made.captures.pcap(host.name))
            lines = made.logs.get(host.name, [])
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / "logs" / f"{host.name}.jsonl").write_text(text)
        members = [
            (host, kind, self.topics if kind == "subscriber" else ()) for host, kind in self.hosts()
        ]
        document = {**manifest_of(members, folder.name), **manifest}
        (folder / "run.json").write_text(json.dumps(document))
        return made


@dataclass
class Written:
    """The truth about a made-up run."""

    captures: Captures
    logs: dict[str, list[dict[str, Any]]]
    arrivals: dict[
        tuple[str, str], int
    ]  # (message id, receiver) -> when its last byte was seen there
    ids: list[str]


def _address(number: int) -> str:
    return str(ipaddress.ip_address("10.77.0.0") + number)


class _Maker:
    """Plays a StarRun and writes its captures and logs."""

    def __init__(self, run: StarRun) -> None:
        self.run = run
        self.hosts = {host.name: (host, kind) for host, kind in run.hosts()}
        self.broker = self.hosts["broker"][0]
        self.captures = Captures()
        self.logs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.connections: dict[str, Connection] = {}
        self.busy: dict[tuple[str, str], int] = defaultdict(int)
        self.arrivals: dict[tuple[str, str], int] = {}

    def make(self) -> Written:
        for name, (host, kind) in self.hosts.items():
            self.captures.add(name, START_NS, arp(host))
            if name != "broker":
                self._connect(host, kind)
        ids = [self._publish(number, p) for number, p in enumerate(self.run.publications)]
        return Written(self.captures, self.logs, self.arrivals, ids)

    def _connect(self, host: Host, kind: str) -> None:
        connection = Connection(
            self.captures,
            host,
            self.broker,
            self.run.decide,
            ports=(40000 + host.number % 20000, 8765),
            delay_ns=self.run.delay_ns,
        )
        self.connections[host.name] = connection
        connection.open(START_NS + host.number * MS)
        hello = wire.encode(wire.Message(wire.Kind.HELLO, payload=b'{"name": "x"}'))
        at_ns = START_NS + 100 * MS + host.number * MS
        connection.send(host, frame(hello, b"\x11\x22\x33\x44"), at_ns)
        connection.send(self.broker, frame(hello), at_ns)
        for topic in self.run.topics if kind == "subscriber" else ():
            wanted = wire.encode(wire.Message(wire.Kind.SUBSCRIBE, topic=topic))
            connection.send(host, frame(wanted, b"\x01\x02\x03\x04"), at_ns + MS)
            given = wire.encode(wire.Message(wire.Kind.SUBSCRIBED, topic=topic))
            connection.send(self.broker, frame(given), at_ns + 20 * MS)

    def _publish(self, number: int, publication: Publication) -> str:
        host = self.hosts[f"sensor-{publication.sensor + 1}"][0]
        published_ns = START_NS + 1_000 * MS + publication.at_ms * MS
        message = wire.Message(
            wire.Kind.PUBLISH,
            priority=publication.priority,
            origin=host.number,
            message_id=wire.message_id(host.number, number + 1),
            published_ns=published_ns,
            topic=publication.topic,
            payload=bytes(number % 251 for _ in range(publication.size)),
        )
        identity = f"{message.message_id:016x}"
        about = {
            "id": identity,
            "topic": message.topic,
            "priority": message.priority,
            "size": publication.size,
        }
        self._log(published_ns, host, "publish", {**about, "late_ns": 250_000})
        came = self._hop(number, message, host, self.broker, published_ns + MS // 2)
        receivers = [h for h, kind in self.hosts.values() if kind == "subscriber"]
        for receiver in receivers if message.topic in self.run.topics else ():
            if came is None:
                continue
            onward = message.forwarded()
            at_ns = self._hop(number, onward, self.broker, receiver, came + self.run.forward_ns)
            if at_ns is not None:
                self.arrivals[identity, receiver.name] = at_ns
                more = {"hops": 2, "published_ns": published_ns, "origin": host.number}
                self._log(at_ns, receiver, "receive", about | more)
        return identity

    def _hop(
        self, number: int, message: wire.Message, source: Host, target: Host, at_ns: int
    ) -> int | None:
        """Send the message over one overlay link; return when its last byte was seen at the target, or None."""
        fate = self.run.fate(number, source.name, target.name)
        if fate == "full":
            about = {"id": f"{message.message_id:016x}", "kind": "PUBLISH", "topic": message.topic}
            self._log(at_ns, source, "drop", {**about, "peer": target.name, "reason": "no room"})
        if fate in ("unsent", "full"):
            return None
        connection = self.connections[source.name if target is self.broker else target.name]
        at_ns = max(at_ns, self.busy[source.name, target.name])
        masked = b"\xa1\xb2\xc3\xd4" if target is self.broker else b""
        data = self.run.as_frames(message, masked)
        usual = connection.decide
        pieces = (len(data) - 1) // connection.mss + 1
        if fate == "vanishes":
            connection.decide = lambda *_: Passing(down=False)
        elif fate == "partial":
            last = connection.packets + pieces - 1
            connection.decide = lambda _host, n, _payload: Passing(down=n != last)
        arrived = connection.send(source, data, at_ns)
        connection.decide = usual
        self.busy[source.name, target.name] = at_ns + pieces * 100_000
        if fate == "twice":
            connection.send(source, data, at_ns + 50 * MS)
            self.busy[source.name, target.name] = at_ns + 51 * MS
        connection.acknowledge(target, arrived)
        return None if fate in ("vanishes", "partial") else arrived

    def _log(self, at_ns: int, host: Host, event: str, more: dict[str, Any]) -> None:
        self.logs[host.name].append({"t": at_ns, "node": host.name, "event": event, **more})


Member = tuple[Host, str, Sequence[str]]  # kind, and the topics to which it subscribes


def manifest_of(members: Sequence[Member], name: str, overlay: str = "star") -> dict[str, Any]:
    """run.json of a run of ten seconds that begins a second after START_NS."""
    shape = {"rate_bps": None, "delay_s": 0.005, "jitter_s": 0.0, "loss": 0.0, "queue_bytes": None}
    nodes = [
        {
            "name": host.name,
            "number": host.number,
            "kind": kind,
            "profile": "lan" if kind == "broker" else "3g",
            "group": None,
            "index": 0,
            "topics": list(topics),
            "at": None,
            "platform": None,
            "board": None,
            "address": host.address,
        }
        for host, kind, topics in members
    ]
    return {
        "format": 2,
        "run": name,
        "lab": "made-up",
        "status": "down",
        "version": "0",
        "created_ns": START_NS,
        "backend": {"name": "netns", "reason": "made up"},
        "emulator": {"name": "relay", "reason": "made up"},
        "topology": {
            "name": "made-up",
            "seed": 1,
            "profiles": [
                {"name": "lan", "up": shape, "down": shape, "mtu": 1500},
                {"name": "3g", "up": shape, "down": shape, "mtu": 1500},
            ],
            "nodes": nodes,
            "overlay": {"method": overlay, "parameters": []},
            "delivery": {"method": "fifo", "parameters": []},
            "emulator": "relay",
            "scenario": {"duration_s": 10.0, "settle_s": 10.0, "publish": []},
            "capture": {"enabled": True, "snaplen": 65535},
            "prefix": "10.77.0.0/16",
        },
        "capture": {host.name: {"packets": 1, "bytes": 1, "dropped": 0} for host, _, _ in members},
        "play": {
            "start_ns": START_NS + 1_000 * MS,
            "end_ns": START_NS + 11_000 * MS,
            "settled": True,
        },
        "details": {"relay": {"late_max_s": 0.001}},
        "machine": {},
        "warnings": [],
    }


def publications(count: int, sensors: int, every_ms: int = 10) -> Iterable[Publication]:
    """A simple mixture: mostly rain, every tenth an alert."""
    for number in range(count):
        alert = number % 10 == 0
        yield Publication(
            sensor=number % sensors,
            at_ms=number * every_ms,
            priority=5 if alert else 1,
            topic="landslide/alert" if alert else "rain",
            size=200,
        )
