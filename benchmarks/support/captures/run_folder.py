"""A big synthetic run folder: sensors, a broker, subscribers; each message in one packet, each packet acknowledged.

As in a lab, a packet from one node to another is in both of their captures, and the broker's has half of all packets.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.support.captures.traffic import LAYOUT, RECORD_HEADER
from nodes.protocol import wire
from testbed.backends.registry import Choice
from testbed.lab.start.run_folder import Sources, begin_run
from testbed.places import RunPlace
from testbed.records import update_manifest
from testbed.topology import load
from testbed.topology.model import Node, NodeKind

Array = npt.NDArray[Any]

SENSORS, SUBSCRIBERS = 16, 4
PACKETS_EACH = 4 * (
    1 + SUBSCRIBERS
)  # of a message: on two links each, and as many acknowledgements
EVERY_NS = 1_000_000  # a message a millisecond
DELAY_NS = 5_000_000  # on each link
START_NS = 1_700_000_000_000_000_000
TOPIC, SIZE = "landslide/alert", 100
BROKER_PORT = 9000
FILE = f"""
name: big
nodes:
  broker: {{{{kind: broker}}}}
groups:
  sensors: {{{{kind: sensor, count: {SENSORS}}}}}
  towns: {{{{kind: subscriber, count: {SUBSCRIBERS}, topics: [{TOPIC}]}}}}
scenario: {{{{duration: {{seconds}}s}}}}
"""


@dataclass(frozen=True, slots=True)
class _Flow:
    """One direction of a connection."""

    src: Node
    dst: Node
    ports: tuple[int, int]


def write_run(folder: Path, packets: int) -> int:
    """Write a run with about this many packets in its captures; return the number of published messages."""
    count = packets // PACKETS_EACH
    folder.mkdir(parents=True)
    file = folder / "big.yaml"
    file.write_text(FILE.format(seconds=count * EVERY_NS // 10**9 + 2))
    topology = load(file)
    place = RunPlace(folder / "run")
    begin_run(topology, Sources(file), place, Choice("netns", "made up"))
    end_ns = START_NS + count * EVERY_NS + 10**9
    play = {"start_ns": START_NS, "end_ns": end_ns, "settled": True}
    emulator = {"name": "relay", "reason": "made up"}
    update_manifest(place, status="down", emulator=emulator, play=play)
    by_kind: dict[NodeKind, list[Node]] = {}
    for node in topology.nodes:
        by_kind.setdefault(node.kind, []).append(node)
    (broker,) = by_kind[NodeKind.BROKER]
    sensors, towns = by_kind[NodeKind.SENSOR], by_kind[NodeKind.SUBSCRIBER]

    number = np.arange(count)
    which = number % len(sensors)
    origins = np.array([sensor.number for sensor in sensors])[which]
    identity = origins.astype(np.int64) << 32 | number // len(sensors) + 1
    published = START_NS + number * EVERY_NS
    captures = _Captures()
    for place_in, sensor in enumerate(sensors):
        mine = which == place_in
        flow = _Flow(sensor, broker, (40_000, BROKER_PORT))
        captures.send(flow, identity[mine], published[mine], published[mine], 1)
    for town in towns:
        flow = _Flow(broker, town, (BROKER_PORT, 40_000))
        captures.send(flow, identity, published, published + 2 * DELAY_NS + 500_000, 2)
    for node in topology.nodes:
        captures.write(place.pcap(node.name), node)
    for place_in, sensor in enumerate(sensors):
        mine = which == place_in
        _log(place, sensor, "publish", identity[mine], published[mine], published[mine])
    for town in towns:
        _log(place, town, "receive", identity, published, published + 4 * DELAY_NS + 600_000)
    return count


class _Captures:
    """Collects the packets of each link, and writes them in the order of time."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[Array, Array]]] = {}

    def send(self, flow: _Flow, identity: Array, published: Array, at_ns: Array, hops: int) -> None:
        """Add messages from one node to another, and their acknowledgements."""
        body = _body(flow, hops)
        masked = flow.dst.kind is NodeKind.BROKER
        width = len(body)
        seq = 1 + np.arange(len(identity)) * width
        payload = np.tile(np.frombuffer(body, np.uint8), (len(identity), 1))
        for name, values in (("message_id", identity), ("published_ns", published)):
            begin = _place_of(name) + (8 if masked else 4)
            payload[:, begin : begin + 8] = values.astype(">u8").view(np.uint8).reshape(-1, 8)
        opening = _heads(flow, at_ns[:1] - 10**8, np.zeros(1, np.int64), 0x02, 0)
        data = _heads(flow, at_ns, seq, 0x18, width)
        back = _Flow(flow.dst, flow.src, (flow.ports[1], flow.ports[0]))
        answers = _heads(back, at_ns + 2 * DELAY_NS + 50_000, np.ones(len(seq), np.int64), 0x10, 0)
        answers["ack"] = (seq + width) % 2**32
        nothing = np.zeros((1, 0), np.uint8)
        for heads, content, sender, receiver in (
            (opening, nothing, flow.src, flow.dst),
            (data, payload, flow.src, flow.dst),
            (answers, np.zeros((len(seq), 0), np.uint8), flow.dst, flow.src),
        ):
            for later, node in ((DELAY_NS, sender), (2 * DELAY_NS, receiver)):
                self._found.setdefault(node.name, []).append((_later(heads, later), content))

    def write(self, path: Path, node: Node) -> None:
        """Write the file of a link."""
        parts = self._found.pop(node.name, [])
        times = [
            heads["seconds"].astype(np.int64) * 10**9 + heads["nanoseconds"] for heads, _ in parts
        ]
        sizes = [np.full(len(heads), LAYOUT.itemsize + body.shape[1]) for heads, body in parts]
        order = np.argsort(np.concatenate(times), kind="stable")
        size = np.concatenate(sizes)[order]
        begins = np.empty(len(order), np.int64)
        begins[order] = np.cumsum(size) - size
        out = np.zeros(int(size.sum()), np.uint8)
        done = 0
        for heads, body in parts:
            mine = begins[done : done + len(heads)]
            done += len(heads)
            _put(out, mine, heads.view(np.uint8).reshape(len(heads), -1))
            _put(out, mine + LAYOUT.itemsize, body)
        with path.open("wb") as file:
            file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
            out.tofile(file)


def _put(out: Array, begins: Array, rows: Array) -> None:
    if rows.shape[1]:
        views = np.lib.stride_tricks.sliding_window_view(out, rows.shape[1], writeable=True)
        views[begins] = rows


def _body(flow: _Flow, hops: int) -> bytes:
    """One WebSocket frame with a message; the mask of a client is zero, so that it changes nothing."""
    message = wire.Message(
        wire.Kind.PUBLISH, priority=5, origin=1, hops=hops, topic=TOPIC, payload=bytes(SIZE)
    )
    content = wire.encode(message)
    masked = flow.dst.kind is NodeKind.BROKER
    head = struct.pack("!BBH", 0x82, 126 | (0x80 if masked else 0), len(content))
    return head + (bytes(4) if masked else b"") + content


def _place_of(name: str) -> int:
    at = 0
    for field in wire.FIELDS:
        if field.name == name:
            break
        at += field.size
    return at


def _heads(flow: _Flow, at_ns: Array, seq: Array, flags: int, size: int) -> Array:
    heads = np.zeros(len(at_ns), LAYOUT)
    heads["seconds"], heads["nanoseconds"] = at_ns // 10**9, at_ns % 10**9
    heads["caplen"] = heads["wirelen"] = size + LAYOUT.itemsize - RECORD_HEADER
    heads["eth_dst"], heads["eth_src"] = (
        b"\x02\x74\x62" + node.number.to_bytes(3) for node in (flow.dst, flow.src)
    )
    heads["eth_type"], heads["version"], heads["ttl"], heads["proto"] = 0x0800, 0x45, 64, 6
    heads["ip_len"] = size + 40
    heads["ip_src"], heads["ip_dst"] = (
        int.from_bytes(bytes(map(int, node.address.split(".")))) for node in (flow.src, flow.dst)
    )
    heads["src_port"], heads["dst_port"] = flow.ports
    heads["seq"], heads["ack"] = seq % 2**32, 1
    heads["offset"], heads["flags"], heads["window"] = 0x50, flags, 65_535
    return heads


def _later(heads: Array, by_ns: int) -> Array:
    moved = heads.copy()
    at_ns = heads["seconds"].astype(np.int64) * 10**9 + heads["nanoseconds"] + by_ns
    moved["seconds"], moved["nanoseconds"] = at_ns // 10**9, at_ns % 10**9
    return moved


def _log(
    place: RunPlace, node: Node, event: str, identity: Array, published: Array, at_ns: Array
) -> None:
    with place.log(node.name).open("w") as file:
        for one, t, began in zip(
            identity.tolist(), at_ns.tolist(), published.tolist(), strict=True
        ):
            line = {
                "t": t,
                "node": node.name,
                "event": event,
                "id": f"{one:016x}",
                "topic": TOPIC,
                "priority": 5,
                "size": SIZE,
            }
            more = {"late_ns": 0} if event == "publish" else {"hops": 2, "published_ns": began}
            file.write(json.dumps({**line, **more}) + "\n")
