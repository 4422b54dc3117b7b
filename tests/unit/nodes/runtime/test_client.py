"""Sensors and subscribers over connections made of lists: what they say on each, and what outlives it."""

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


class Line:
    """A connection; `room` messages fit into it, and what came over it stands in `sent`."""

    prompt_acks = False

    def __init__(self, room: int) -> None:
        self.arrived_ns = time.time_ns()
        self.sent: list[Message] = []
        self._room = room
        self._incoming: asyncio.Queue[Chunk | ConnectionClosedError] = asyncio.Queue()
        self._lost = asyncio.Event()

    async def receive_chunk(self) -> Chunk:
        chunk = await self._incoming.get()
        if isinstance(chunk, ConnectionClosedError):
            raise chunk
        return chunk

    async def send_chunk(self, chunk: Chunk) -> None:
        if len(self.sent) >= self._room:
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

    def say(self, message: Message) -> None:
        """The broker says something."""
        self._incoming.put_nowait(Chunk(encode(message)))

    def break_off(self, how: ConnectionClosedError = LOST) -> None:
        self._incoming.put_nowait(how)
        self._lost.set()


class Brokers:
    """Accepts connections as the test says: with a link, or not at all."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.lines: list[Line] = []
        self.down: set[str] = set()
        self.room = 1_000_000

    async def dial(
        self, config: NodeConfig, broker: BrokerAddress, method: LinkMethod, queue: Scheduler
    ) -> Link:
        self.called.append(broker.name)
        if broker.name in self.down:
            raise ConnectionRefusedError(f"{broker.name} does not listen")
        self.lines.append(Line(self.room))
        return Link(broker.name, self.lines[-1], queue, Whole({}))  # type: ignore[arg-type]


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


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(bounded())


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def published(line: Line) -> list[int]:
    return [m.message_id & 0xFFFFFFFF for m in line.sent if m.kind is Kind.PUBLISH]


def test_over_a_break_the_queue_keeps_what_has_no_custody_and_the_core_what_has(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def story() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        brokers.room = 0
        await until(lambda: sensor.ready)
        sensor.publish("t", 5, 10)
        sensor.publish("t", 1, 10)
        sensor.publish("t", 4, 10)
        assert (sensor.queued, sensor.status()["owed"]) == (3, 2)
        brokers.room = 1_000_000
        brokers.lines[0].break_off()
        await until(lambda: len(brokers.lines) == 2 and len(published(brokers.lines[1])) == 3)
        assert published(brokers.lines[1]) == [2, 1, 3], "each once"
        assert (sensor.queued, sensor.status()["owed"]) == (0, 2)
        await sensor.close()

    run(story)


def test_a_lost_broker_is_called_once_more_then_the_next_and_one_that_stops_is_left_at_once(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def story() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.core.broker == "b1")
        brokers.down = {"b1"}
        brokers.lines[0].break_off()
        await until(lambda: sensor.core.broker == "b2")
        assert brokers.called == ["b1", "b1", "b2"]
        brokers.down = {"b2"}
        brokers.lines[1].break_off(SENT_AWAY)
        await until(lambda: sensor.core.broker == "b1")
        assert brokers.called == ["b1", "b1", "b2", "b1"]
        assert sensor.status()["home"] == "b1"
        await sensor.close()

    run(story)


def test_what_is_owed_is_in_the_journal_until_it_is_taken(brokers: Brokers, tmp_path: Path) -> None:
    async def story() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.ready)
        for level in (5, 2, 3):
            sensor.publish("t", level, 10)
        line = brokers.lines[0]
        await until(lambda: len(published(line)) == 3)
        assert [each.message_id for each in journalled()] == [message_id(3, 1), message_id(3, 3)]
        line.say(acknowledgement(1, Message(Kind.PUBLISH, message_id=message_id(3, 1))))
        await until(lambda: sensor.status()["owed"] == 1)
        assert [each.message_id for each in journalled()] == [message_id(3, 3)]
        # It is killed: nothing is closed, and another process begins with the same files.
        again = started(Sensor, config(tmp_path, "sensor"))
        await again.open()
        await until(lambda: len(brokers.lines) == 2 and len(published(brokers.lines[1])) == 2)
        restored = [m for m in brokers.lines[1].sent if m.kind is Kind.PUBLISH]
        assert all(map(has_custody, restored))
        assert published(brokers.lines[1]) == [3, 1]
        assert [bool(each.flags & REPEATED) for each in restored] == [False, True]
        again.publish("t", 5, 10)
        await until(lambda: published(brokers.lines[1]) == [3, 1, 4])
        await sensor.close()
        await again.close()

    def journalled() -> list[Message]:
        journal = Journal(str(tmp_path / "journal"), "r1")
        try:
            return journal.pending()
        finally:
            journal.close()

    run(story)


def test_a_timeline_is_advertised_at_once(brokers: Brokers, tmp_path: Path) -> None:
    async def story() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.ready)
        later = [
            {"at_ns": 10**18, "topic": topic, "priority": 5, "size": 1} for topic in ("a", "b", "a")
        ]
        sensor.play(2 * 10**18, later)
        line = brokers.lines[0]
        await until(lambda: len(line.sent) == 2)
        assert [(m.kind, m.topic) for m in line.sent] == [
            (Kind.ADVERTISE, "a"),
            (Kind.ADVERTISE, "b"),
        ]
        sensor.begin_stop()
        await sensor.close()

    run(story)


def test_a_full_queue_drops_no_alert_that_the_sensor_keeps(
    brokers: Brokers, tmp_path: Path
) -> None:
    async def story() -> None:
        few = {"method": "fifo", "parameters": {"limit_bytes": 500}}
        sensor = started(Sensor, config(tmp_path, "sensor", delivery=few))
        await sensor.open()
        await until(lambda: sensor.ready)
        assert sensor.publish("t", 5, 1000) == f"{message_id(3, 1):016x}"
        assert sensor.status()["owed"] == 1
        with pytest.raises(Exception, match="was dropped"):
            sensor.publish("t", 1, 1000)
        await sensor.close()

    run(story)


def test_a_subscriber_started_again_takes_up_where_its_log_ends(
    brokers: Brokers, tmp_path: Path
) -> None:
    alert = Message(Kind.PUBLISH, 5, 2, CUSTODY, 9, message_id(9, 1), 7, "t", b"go")

    async def story() -> None:
        first = started(Subscriber, config(tmp_path, "subscriber", topics=["t"]))
        await first.open()
        await until(lambda: brokers.lines and brokers.lines[0].sent)
        brokers.lines[0].say(Message(Kind.SUBSCRIBED, topic="t"))
        brokers.lines[0].say(alert)
        await until(lambda: first.received == 1 and len(brokers.lines[0].sent) == 2)
        assert [m.kind for m in brokers.lines[0].sent] == [Kind.SUBSCRIBE, Kind.TAKEN]
        again = started(Subscriber, config(tmp_path, "subscriber", topics=["t"]))
        await again.open()
        await until(lambda: len(brokers.lines) == 2 and len(brokers.lines[1].sent) == 2)
        subscribe, missed = brokers.lines[1].sent
        assert (subscribe.kind, missed.kind) == (Kind.SUBSCRIBE, Kind.MISSED)
        assert alert.message_id in decode_digest(missed.payload)
        brokers.lines[1].say(alert)
        await until(lambda: len(brokers.lines[1].sent) == 3)
        assert brokers.lines[1].sent[2].kind is Kind.TAKEN
        assert again.received == 0
        await first.close()
        await again.close()

    run(story)


def test_a_disk_that_fails_is_one_line_in_the_log_for_each_row_of_failures(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints: list[str] = []
    full = OSError(28, "No space left on device")

    def fail(self: Journal, message: Message) -> None:
        raise full

    async def story() -> None:
        sensor = started(Sensor, config(tmp_path, "sensor"))
        await sensor.open()
        await until(lambda: sensor.ready)
        for fails in (True, True, False, True):
            with monkeypatch.context() as patched:
                if fails:
                    patched.setattr(Journal, "add", fail)
                sensor.publish("t", 5, 10)
        await until(lambda: published(brokers.lines[0]) == [1, 2, 3, 4])
        assert sensor.status()["owed"] == 4
        await sensor.close()
        lines = (tmp_path / "n1.jsonl").read_text().splitlines()
        complaints.extend(line for line in lines if json.loads(line)["event"] == "journal")

    run(story)
    assert len(complaints) == 2
    assert "cannot be written: No space left on device" in complaints[0]
