"""Run folders with many brokers, made up message by message: a test decides what is sent when, and knows the truth.

    run = BrokerRun(brokers=("a", "b"), sensors=("slope",), towns={"east": ("alert",)})
    run.link("slope", "a", 0); run.link("a", "b", 10); run.link("east", "b", 20)
    alert = run.publish("slope", 1000, topic="alert", priority=5)
    run.pass_on(alert, "slope", "a", "b", "east")

Times are milliseconds after START_NS; the scenario is played from 1,000 to 11,000.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from nodes.protocol import wire
from support.runs.star_runs import MS, START_NS, Captures, Connection, Host, frame, manifest_of

MASK = b"\xa1\xb2\xc3\xd4"
FORWARD_NS = MS


class Sent(NamedTuple):
    """A message on its way."""

    src: str
    dst: str
    message: wire.Message
    at_ns: int
    seen_ns: int  # on the sender's link
    size: int  # of its frame


@dataclass
class BrokerRun:
    """A lab whose links, messages and deaths the test adds one by one."""

    brokers: tuple[str, ...]
    sensors: tuple[str, ...]
    towns: Mapping[str, tuple[str, ...]]  # the topics to which each one subscribes
    overlay: str = "sg-tbps"
    delay_ns: int = 5 * MS
    captures: Captures = field(default_factory=Captures)
    logs: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    arrivals: dict[tuple[str, str], int] = field(default_factory=dict)  # (id, receiver): the first
    paths: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    opened: int = 0  # connections

    def __post_init__(self) -> None:
        names = (*self.brokers, *self.sensors, *self.towns)
        self.hosts = {
            name: Host(name, number, f"10.77.0.{number}")
            for number, name in enumerate(names, start=1)
        }
        self.connections: dict[frozenset[str], Connection] = {}
        self.last: dict[tuple[str, str], int] = defaultdict(int)  # when a direction was last used
        self.counters: dict[str, int] = defaultdict(int)
        for name in names:
            self.log(name, 0, "start", kind=self.kind(name), pid=1, run="made-up")

    def kind(self, name: str) -> str:
        if name in self.brokers:
            return "broker"
        return "sensor" if name in self.sensors else "subscriber"

    def log(self, name: str, at_ms: float, event: str, **more: Any) -> None:
        """Add a line to a node's log."""
        self._log_ns(name, START_NS + round(at_ms * MS), event, **more)

    def _log_ns(self, name: str, t: int, event: str, **more: Any) -> None:
        self.logs[name].append({"t": t, "node": name, "event": event, **more})

    def link(self, client: str, server: str, at_ms: float) -> None:
        """Open a new connection with HELLO in both directions; an older one between the two nodes is no longer used."""
        self.opened += 1
        connection = Connection(
            self.captures,
            self.hosts[client],
            self.hosts[server],
            ports=(40000 + self.opened, 8765),
            delay_ns=self.delay_ns,
        )
        self.connections[frozenset((client, server))] = connection
        connection.open(START_NS + round(at_ms * MS))
        hello = wire.Message(wire.Kind.HELLO, payload=b'{"name": "x"}')
        self.send(client, server, hello, at_ms + 40)
        self.send(server, client, hello, at_ms + 45)
        for name, peer in ((client, server), (server, client)):
            self.log(name, at_ms + 60, "connect", peer=peer)
        for topic in self.towns.get(client, ()):
            self.send(client, server, wire.Message(wire.Kind.SUBSCRIBE, topic=topic), at_ms + 61)

    def send(self, src: str, dst: str, message: wire.Message, at_ms: float) -> int:
        """Send one message over the link between the two nodes; return when its last byte is at `dst`."""
        return self._send_ns(src, dst, message, START_NS + round(at_ms * MS))

    def _send_ns(self, src: str, dst: str, message: wire.Message, at_ns: int) -> int:
        connection = self.connections[frozenset((src, dst))]
        mask = MASK if connection.client.name == src else b""
        at_ns = max(at_ns, self.last[src, dst] + 100_000)
        data = frame(wire.encode(message), mask)
        arrived = connection.send(self.hosts[src], data, at_ns)
        self.last[src, dst] = at_ns + 100_000 * (len(data) // connection.mss)
        self.sent.append(Sent(src, dst, message, at_ns, at_ns + self.delay_ns, len(data)))
        return arrived

    def publish(
        self,
        sensor: str,
        at_ms: float,
        topic: str = "alert",
        priority: int = 5,
        size: int = 200,
        flags: int = 0,
    ) -> wire.Message:
        """Write a publication to the sensor's log; nothing is sent yet."""
        self.counters[sensor] += 1
        number = self.hosts[sensor].number
        identity = wire.message_id(number, self.counters[sensor])
        published_ns = START_NS + round(at_ms * MS)
        about = {"id": f"{identity:016x}", "topic": topic, "priority": priority, "size": size}
        self._log_ns(sensor, published_ns, "publish", **about, late_ns=250_000)
        return wire.Message(
            wire.Kind.PUBLISH,
            priority,
            flags=flags,
            origin=number,
            message_id=identity,
            published_ns=published_ns,
            topic=topic,
            payload=bytes(size),
        )

    def pass_on(
        self, message: wire.Message, *way: str, at_ms: float | None = None, routing: bytes = b""
    ) -> int:
        """Pass the publication from node to node along this path; return when it has arrived at the last one.

        It leaves at `at_ms`, or as soon as the first node has it. A copy between brokers carries the routing section.
        The last node, if it is a town, logs that it received the copy.
        """
        identity = f"{message.message_id:016x}"
        began = self.arrivals.get((identity, way[0]), message.published_ns)
        at_ns = began if at_ms is None else START_NS + round(at_ms * MS)
        for place, (src, dst) in enumerate(pairwise(way)):
            before = self.paths.get((identity, src), [src])
            between = src in self.brokers and dst in self.brokers
            copy = replace(message, hops=len(before), routing=routing if between else b"")
            at_ns = self._send_ns(src, dst, copy, at_ns + (FORWARD_NS if place else 0))
            if (identity, dst) not in self.arrivals:
                self.arrivals[identity, dst] = at_ns
                self.paths[identity, dst] = [*before, dst]
        return at_ns

    def hand(self, message: wire.Message, town: str, at_ns: int, event: str = "receive") -> None:
        """Log that the town's application got the publication; `duplicate`: it was suppressed instead."""
        more = {"hops": 2, "published_ns": message.published_ns, "origin": message.origin}
        about = {"topic": message.topic, "priority": message.priority, "size": len(message.payload)}
        self._log_ns(town, at_ns, event, id=f"{message.message_id:016x}", **about, **more)

    def deliver(self, message: wire.Message, *way: str, **how: Any) -> int:
        """`pass_on` to a town, and hand the publication to its application."""
        at_ns = self.pass_on(message, *way, **how)
        self.hand(message, way[-1], at_ns)
        return at_ns

    def write(self, folder: Path, dead: tuple[str, ...] = (), **manifest: Any) -> None:
        """Write the run folder; all nodes but the dead ones stop in order at the end."""
        (folder / "pcap").mkdir(parents=True)
        (folder / "logs").mkdir()
        for name in self.hosts:
            if name not in dead:
                self.log(name, 12_000, "stop", published=0, received=0)
            (folder / "pcap" / f"{name}.pcap").write_bytes(self.captures.pcap(name))
            text = "".join(json.dumps(line) + "\n" for line in self.logs[name])
            (folder / "logs" / f"{name}.jsonl").write_text(text)
        members = [
            (host, self.kind(name), self.towns.get(name, ())) for name, host in self.hosts.items()
        ]
        document = {**manifest_of(members, folder.name, self.overlay), **manifest}
        (folder / "run.json").write_text(json.dumps(document))
