"""Requests on the control socket, and deadlines of a node's core, without a process or a network."""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodes.delivery.base import Dropped
from nodes.overlay.base import Action, Deliver, Duplicate, Refuse, Send
from nodes.protocol.wire import Kind, Message, encode
from nodes.runtime.broker import Broker
from nodes.runtime.config import Endpoint, NodeConfig, parse
from nodes.runtime.connection import SETTINGS
from nodes.runtime.control import ControlSocket, respond
from nodes.runtime.link_eviction import LinkActivity
from nodes.runtime.log import Log
from nodes.runtime.node import NodeFailed
from nodes.runtime.sensor import Sensor
from support.ports import ReservedPorts
from testbed.control import ControlError, request


def config(folder: Path, kind: str) -> NodeConfig:
    place = {"host": "127.0.0.1", "port": 7}
    return parse(
        {
            "lab": "slope",
            "run": "r1",
            "name": "n1",
            "number": 1,
            "kind": kind,
            "control": str(folder / "ctl"),
            "log": str(folder / "n1.jsonl"),
            "seed": 1,
            "overlay": {"method": "star", "parameters": {}},
            "delivery": {"method": "fifo", "parameters": {}},
            "deliveries": {},
            "listen": place,
            "brokers": [{"name": "b1", "number": 2, **place}],
            "seeds": [],
            "topics": [],
            "dimensions": 0,
            "secret": "of the slope",
            "journal": None,
        }
    )


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "n1.jsonl").read_text().splitlines()]


def test_every_request_has_an_answer_and_an_invalid_request_a_reason(tmp_path: Path) -> None:
    async def ask() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        node = Sensor(config(tmp_path, "sensor"), log)
        assert respond(node, {"do": "status"}) == {
            "ok": True,
            "state": "waiting",
            "ready": False,
            "published": 0,
            "received": 0,
            "queued": 0,
            "under_way": 0,
            "peers": [],
            "playing": 0,
            "broker": None,
            "pending": 0,
        }
        assert respond(node, {"do": "overlay"})["overlay"] == {"broker": None, "pending": 0}
        for bad, reason in [
            (5, "a question is a JSON object"),
            ({}, "None is no question"),
            ({"do": ["go"]}, "is no question; there are status, overlay, go, publish, play"),
            ({"do": "publish"}, "n1 is waiting"),
        ]:
            reply = respond(node, bad)
            assert reply["ok"] is False
            assert reason in reply["error"]
        assert respond(node, {"do": "go"}) == {"ok": True}
        assert respond(node, {"do": "go"}) == {"ok": True}
        assert "topic is None" in respond(node, {"do": "publish"})["error"]
        published = {"do": "publish", "topic": "t", "priority": 1, "size": 9}
        assert respond(node, published) == {"ok": True, "id": "0000000100000001"}
        assert respond(node, {"do": "status"})["queued"] == 1
        node.terminate()
        assert "does not take go" in respond(node, {"do": "go"})["error"]
        assert "n1 is stopping" in respond(node, published)["error"]
        log.close()

    asyncio.run(ask())
    (publish,) = events(tmp_path)
    assert publish["id"] == "0000000100000001"


def test_several_requests_are_answered_line_by_line_and_invalid_ones_are_survived(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        path = tmp_path / "ctl"
        async with ControlSocket(str(path), Broker(config(tmp_path, "broker"), log)):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(
                b'nonsense\n{"do": "status"}\n' + b"[" * 100_000 + b'\n{"do": "publish"}\n'
            )
            replies = [json.loads(await reader.readline()) for _ in range(4)]
            assert [reply["ok"] for reply in replies] == [False, True, False, False]
            assert replies[3]["error"] == "n1 is a broker; only sensors publish"
            writer.close()
            status = await asyncio.to_thread(request, path, {"do": "status"})
            assert status["state"] == "waiting"
            with pytest.raises(ControlError, match="is no question"):
                await asyncio.to_thread(request, path, {"do": "dance"})
        assert not path.exists()
        log.close()

    asyncio.run(scenario())


class FullLink:
    """A link that accepts nothing, and records the reasons of its end."""

    peer = "c1"
    closing_orderly = False

    def __init__(self) -> None:
        self.activity = LinkActivity(0.0)
        self.ended: list[str] = []

    def offer(
        self, data: bytes, priority: int, *, control: bool, upkeep: bool
    ) -> tuple[Dropped, ...]:
        return (Dropped(data, priority, "no room at all"),)

    def end(self, reason: str, code: int) -> None:
        self.ended.append(reason)


def test_a_full_link_ends_only_when_a_control_message_does_not_fit(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        node = Broker(config(tmp_path, "broker"), log)
        link = FullLink()
        node.links["c1"] = link  # type: ignore[assignment]
        assert node.perform([Send("c1", Message(Kind.PUBLISH, topic="t"))]) == ["no room at all"]
        assert link.ended == []
        node.perform([Send("c1", Message(Kind.OVERLAY))])  # the overlay will send it again
        assert link.ended == []
        node.perform([Send("c1", Message(Kind.SUBSCRIBED, topic="t"))])
        assert link.ended == ["no room for SUBSCRIBED: no room at all"]
        log.close()

    asyncio.run(scenario())
    assert [event["kind"] for event in events(tmp_path)] == ["PUBLISH", "OVERLAY", "SUBSCRIBED"]


class EvictingLink(FullLink):
    """A link that evicts an older message for each new one."""

    older = Message(Kind.PUBLISH, priority=2, message_id=7, topic="⛰" * 85, payload=b"x" * 999)

    def offer(
        self, data: bytes, priority: int, *, control: bool, upkeep: bool
    ) -> tuple[Dropped, ...]:
        return (Dropped(encode(self.older), 2, "made room for level 5"),)


def test_an_evicted_message_is_logged_by_its_own_id_and_the_newer_is_not_refused(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        node = Broker(config(tmp_path, "broker"), log)
        node.links["c1"] = EvictingLink()  # type: ignore[assignment]
        newer = Message(Kind.PUBLISH, priority=5, message_id=8, topic="t")
        assert node.perform([Send("c1", newer)]) == []
        log.close()

    asyncio.run(scenario())
    (drop,) = events(tmp_path)
    assert drop == {
        "t": drop["t"],
        "node": "n1",
        "event": "drop",
        "id": "0000000000000007",
        "kind": "PUBLISH",
        "topic": EvictingLink.older.topic,
        "priority": 2,
        "peer": "c1",
        "reason": "made room for level 5",
    }


def test_a_sensor_whose_timeline_fails_ends_with_an_error(tmp_path: Path) -> None:
    async def scenario() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        node = Sensor(config(tmp_path, "sensor"), log)
        node.core.publish = lambda message, now: 1 / 0  # type: ignore[method-assign]
        node.go()
        action = {"at_ns": 0, "topic": "t", "priority": 1, "size": 1}
        assert node.play(0, [action]) == 1
        with pytest.raises(NodeFailed, match="ZeroDivisionError"):
            await node.run_until_stopped()
        await node.close()
        log.close()

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize("patience_s", [0.05, 600])
def test_a_client_that_sends_nothing_is_refused_in_time_unless_the_broker_stops_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    monkeypatch.setitem(SETTINGS, "open_timeout", patience_s)

    async def scenario() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        port = ports.reserve()
        listening = replace(config(tmp_path, "broker"), listen=Endpoint("127.0.0.1", port))
        node = Broker(listening, log)
        node.go()
        running = asyncio.create_task(node.run_until_stopped())
        while not node.ready:
            await asyncio.sleep(0.005)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if patience_s < 1:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        node.terminate()
        await running
        writer.close()
        log.close()

    with ReservedPorts() as ports:
        asyncio.run(asyncio.wait_for(scenario(), 60))
    refusals = [event["reason"] for event in events(tmp_path) if event["event"] == "refuse"]
    assert refusals == (["no WebSocket handshake in time"] if patience_s < 1 else [])
    assert events(tmp_path)[-1]["event"] == "stop"


class Clockwork:
    """An overlay that wakes up at one deadline, and returns every kind of action there."""

    def __init__(self, due: float) -> None:
        self.due: float | None = due
        self.woken_at: list[float] = []

    ready = left = True

    def leave(self, now: float) -> list[Action]:
        return []

    def on_link_up(self, peer: str, now: float) -> list[Action]:
        return []

    def on_link_down(
        self, peer: str, now: float, orderly: bool = False, stopping: bool = False
    ) -> list[Action]:
        return []

    def on_unreachable(self, peer: str, now: float) -> list[Action]:
        return []

    def on_message(self, peer: str, message: Message, now: float) -> list[Action]:
        return []

    def next_deadline(self) -> float | None:
        return self.due

    def on_deadline(self, now: float) -> list[Action]:
        self.woken_at.append(now)
        self.due = None
        message = Message(Kind.PUBLISH, message_id=1, topic="t")
        return [Deliver(message), Duplicate(message), Send("gone", message), Refuse("gone", "so")]


def test_a_core_is_woken_at_its_deadline_and_its_actions_are_carried_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        log = Log(str(tmp_path / "n1.jsonl"), "n1")
        node = Broker(config(tmp_path, "broker"), log)
        core = Clockwork(node.now() + 0.02)
        node.core = core
        node.perform([])
        end = time.monotonic() + 60
        while not core.woken_at and time.monotonic() < end:
            await asyncio.sleep(0.005)
        assert len(core.woken_at) == 1
        assert node.received == 1
        log.close()

    asyncio.run(scenario())
    kinds = [event["event"] for event in events(tmp_path)]
    assert kinds == ["receive", "duplicate", "drop"]  # a peer that is gone needs no refusal
    assert events(tmp_path)[2]["reason"] == "there is no link to gone"
