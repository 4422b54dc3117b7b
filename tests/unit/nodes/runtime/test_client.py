"""Sensors and subscribers over connections made of lists: what they send on each, and what survives it."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from nodes.delivery.base import Chunk, Scheduler
from nodes.delivery.fifo import Whole
from nodes.overlay.reliability.custody import acknowledgement, has_custody
from nodes.overlay.reliability.digest import decode as decode_digest
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message, decode, encode, message_id
from nodes.runtime import client
from nodes.runtime.config import BrokerAddress, NodeConfig, parse
from nodes.runtime.connection import GOING_AWAY
from nodes.runtime.journal import Journal
from nodes.runtime.link import Link, LinkMethod
from nodes.runtime.log import Log
from nodes.runtime.sensor import Sensor
from nodes.runtime.subscriber import Subscriber
from nodes.runtime.tcp_info import NO_TRAFFIC, Traffic

LOST = ConnectionClosedError(None, None)
SENT_AWAY = ConnectionClosedError(Close(GOING_AWAY, "the broker stops"), None)


class FakeConnection:
    """A connection that accepts `capacity` messages and records them in `sent`."""

    prompt_acks = False

    def __init__(self, capacity: int) -> None:
        self.arrived_ns = time.time_ns()
        self.sent: list[Message] = []
        self._capacity = capacity
        self._incoming: asyncio.Queue[Chunk | ConnectionClosedError] = asyncio.Queue()
        self._lost = asyncio.Event()

    async def receive_chunk(self) -> Chunk:
        chunk = await self._incoming.get()
        if isinstance(chunk, ConnectionClosedError):
            raise chunk
        return chunk

    async def send_chunk(self, chunk: Chunk) -> None:
        if len(self.sent) >= self._capacity:
            await self._lost.wait()
            raise LOST
        self.sent.append(decode(chunk.data))

    def packet_payload(self) -> int:
        return 1444

    def unsent_bytes(self) -> int:
        return 0

    def shortest_round_trip_s(self) -> float:
        return 0.25

    def traffic(self) -> Traffic:
        return NO_TRAFFIC

    async def close(self, code: int, reason: str) -> None:
        self.break_off()

    def receive(self, message: Message) -> None:
        """Let a message of the broker arrive."""
        self._incoming.put_nowait(Chunk(encode(message)))

    def break_off(self, how: ConnectionClosedError = LOST) -> None:
        self._incoming.put_nowait(how)
        self._lost.set()


class Brokers:
    """Brokers that accept connections, except those in `down`."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.connections: list[FakeConnection] = []
        self.down: set[str] = set()
        self.capacity = 1_000_000

    async def dial(
        self, config: NodeConfig, broker: BrokerAddress, method: LinkMethod, queue: Scheduler
    ) -> Link:
        self.called.append(broker.name)
        if broker.name in self.down:
            raise ConnectionRefusedError(f"{broker.name} does not listen")
        self.connections.append(FakeConnection(self.capacity))
        return Link(broker.name, self.connections[-1], queue, Whole({}))  # type: ignore[arg-type]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    answering = Brokers()
    monkeypatch.setattr(client, "dial", answering.dial)
    monkeypatch.setattr("nodes.runtime.broker_selection.FIRST_S", 0.001)
    monkeypatch.setattr("nodes.runtime.broker_selection.STARTING_S", 0.0)
    return answering


def config(folder: Path, kind: str, **more: Any) -> NodeConfig:
    place = {"host": "127.0.0.1", "port": 7}
    return parse(
        {
            "lab": "slope",
            "run": "r1",
            "name": "n1",
            "number": 3,
            "kind": kind,
            "control": str(folder / "ctl"),
            "log": str(folder / "n1.jsonl"),
            "seed": 1,
            "overlay": {"method": "sg-tbps", "parameters": {}},
            "delivery": {"method": "fifo", "parameters": {}},
            "deliveries": {},
            "listen": None,
            "brokers": [{"name": f"b{i}", "number": i, **place} for i in (1, 2)],
            "seeds": [],
            "topics": [],
            "dimensions": 0,
            "secret": "of the slope",
            "journal": str(folder / "journal") if kind == "sensor" else None,
            **more,
        }
    )


def started(node: type[client.Client], what: NodeConfig) -> Any:
    made = node(what, Log(what.log, what.name))
    made.go()
    return made


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def published(connection: FakeConnection) -> list[int]:
    return [m.message_id & 0xFFFFFFFF for m in connection.sent if m.kind is Kind.PUBLISH]


def test_a_broken_link_loses_neither_queued_publications_nor_those_with_custody(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def scenario() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        brokers.capacity = 0
        await until(lambda: sensor.ready)
        sensor.publish("t", 5, 10)
        sensor.publish("t", 1, 10)
        sensor.publish("t", 4, 10)
        assert (sensor.queued, sensor.status()["pending"]) == (3, 2)
        brokers.capacity = 1_000_000
        brokers.connections[0].break_off()
        await until(
            lambda: len(brokers.connections) == 2 and len(published(brokers.connections[1])) == 3
        )
        assert published(brokers.connections[1]) == [2, 1, 3], "each publication once"
        assert (sensor.queued, sensor.status()["pending"]) == (0, 2)
        await sensor.close()

    run(scenario)


def test_a_lost_broker_is_called_once_more_but_a_broker_that_stops_is_left_at_once(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def scenario() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.core.broker == "b1")
        brokers.down = {"b1"}
        brokers.connections[0].break_off()
        await until(lambda: sensor.core.broker == "b2")
        assert brokers.called == ["b1", "b1", "b2"]
        brokers.down = {"b2"}
        brokers.connections[1].break_off(SENT_AWAY)
        await until(lambda: sensor.core.broker == "b1")
        assert brokers.called == ["b1", "b1", "b2", "b1"]
        assert sensor.status()["broker"] == "b1"
        await sensor.close()

    run(scenario)


def test_pending_publications_are_in_the_journal_until_they_are_acknowledged(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def scenario() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.ready)
        for level in (5, 2, 3):
            sensor.publish("t", level, 10)
        connection = brokers.connections[0]
        await until(lambda: len(published(connection)) == 3)
        assert [each.message_id for each in journalled()] == [message_id(3, 1), message_id(3, 3)]
        connection.receive(acknowledgement(1, Message(Kind.PUBLISH, message_id=message_id(3, 1))))
        await until(lambda: sensor.status()["pending"] == 1)
        assert [each.message_id for each in journalled()] == [message_id(3, 3)]
        # The sensor is killed: it closes nothing, and another process starts with the same files.
        again = started(Sensor, config(tmp_path, "sensor"))
        await again.open()
        await until(
            lambda: len(brokers.connections) == 2 and len(published(brokers.connections[1])) == 2
        )
        restored = [m for m in brokers.connections[1].sent if m.kind is Kind.PUBLISH]
        assert all(map(has_custody, restored))
        assert published(brokers.connections[1]) == [3, 1]
        assert [bool(each.flags & REPEATED) for each in restored] == [False, True]
        again.publish("t", 5, 10)
        await until(lambda: published(brokers.connections[1]) == [3, 1, 4])
        await sensor.close()
        await again.close()

    def journalled() -> list[Message]:
        journal = Journal(str(tmp_path / "journal"), "r1")
        try:
            return journal.pending()
        finally:
            journal.close()

    run(scenario)


def test_a_timeline_is_advertised_at_once(brokers: Brokers, tmp_path: Path) -> None:
    async def scenario() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.ready)
        later = [
            {"at_ns": 10**18, "topic": topic, "priority": 5, "size": 1} for topic in ("a", "b", "a")
        ]
        sensor.play(2 * 10**18, later)
        connection = brokers.connections[0]
        await until(lambda: len(connection.sent) == 2)
        assert [(m.kind, m.topic) for m in connection.sent] == [
            (Kind.ADVERTISE, "a"),
            (Kind.ADVERTISE, "b"),
        ]
        sensor.begin_stop()
        await sensor.close()

    run(scenario)


def test_a_full_queue_drops_no_alert_that_the_sensor_keeps(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def scenario() -> None:
        few = {"method": "fifo", "parameters": {"limit_bytes": 500}}
        sensor = started(Sensor, config(tmp_path, "sensor", delivery=few))
        await sensor.open()
        await until(lambda: sensor.ready)
        assert sensor.publish("t", 5, 1000) == f"{message_id(3, 1):016x}"
        assert sensor.status()["pending"] == 1
        with pytest.raises(Exception, match="was dropped"):
            sensor.publish("t", 1, 1000)
        await sensor.close()

    run(scenario)


def test_a_restarted_subscriber_continues_where_its_log_ends(
    brokers: Brokers, tmp_path: Path
) -> None:
    alert = Message(Kind.PUBLISH, 5, 2, CUSTODY, 9, message_id(9, 1), 7, "t", b"go")

    async def scenario() -> None:
        first = started(Subscriber, config(tmp_path, "subscriber", topics=["t"]))
        await first.open()
        await until(lambda: brokers.connections and brokers.connections[0].sent)
        brokers.connections[0].receive(Message(Kind.SUBSCRIBED, topic="t"))
        brokers.connections[0].receive(alert)
        await until(lambda: first.received == 1 and len(brokers.connections[0].sent) == 2)
        assert [m.kind for m in brokers.connections[0].sent] == [Kind.SUBSCRIBE, Kind.ACK]
        again = started(Subscriber, config(tmp_path, "subscriber", topics=["t"]))
        await again.open()
        await until(lambda: len(brokers.connections) == 2 and len(brokers.connections[1].sent) == 2)
        subscribe, missed = brokers.connections[1].sent
        assert (subscribe.kind, missed.kind) == (Kind.SUBSCRIBE, Kind.MISSED)
        assert alert.message_id in decode_digest(missed.payload)
        brokers.connections[1].receive(alert)
        await until(lambda: len(brokers.connections[1].sent) == 3)
        assert brokers.connections[1].sent[2].kind is Kind.ACK
        assert again.received == 0
        await first.close()
        await again.close()

    run(scenario)


def test_a_failing_disk_is_logged_once_for_each_series_of_failures(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[str] = []
    full = OSError(28, "No space left on device")

    def fail(self: Journal, message: Message) -> None:
        raise full

    async def scenario() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.ready)
        for fails in (True, True, False, True):
            with monkeypatch.context() as patched:
                if fails:
                    patched.setattr(Journal, "add", fail)
                sensor.publish("t", 5, 10)
        await until(lambda: published(brokers.connections[0]) == [1, 2, 3, 4])
        assert sensor.status()["pending"] == 4
        await sensor.close()
        lines = (tmp_path / "n1.jsonl").read_text().splitlines()
        complaints.extend(line for line in lines if json.loads(line)["event"] == "journal")

    run(scenario)
    assert len(complaints) == 2
    assert "cannot be written: No space left on device" in complaints[0]
