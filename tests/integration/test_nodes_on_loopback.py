"""Broker, sensor and subscriber as real processes on the loopback, asked over their real control sockets."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from nodes.runtime.greeting import hello
from nodes.wire import (
    MAX_MESSAGE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_SUBSCRIPTIONS,
    Kind,
    Message,
    encode,
)
from testbed import zipapp
from testbed.control import ControlError, request

PATIENCE_S = 60


def until(true: Callable[[], Any]) -> Any:
    """Wait for something to become true; what it was."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := true():
            return value
        time.sleep(0.01)
    raise AssertionError("it never became true")


class RunningNode:
    """A node's process, its control socket and its log."""

    def __init__(self, folder: Path, command: list[str], config: dict[str, Any]) -> None:
        self.name: str = config["name"]
        self.folder = folder / self.name
        self.folder.mkdir(exist_ok=True)
        self.log = folder / f"{self.name}.jsonl"
        self.complaints = folder / f"{self.name}.stderr"
        self.control = self.folder / "ctl"
        self.file = self.folder / "node.json"
        self.file.write_text(
            json.dumps({**config, "control": str(self.control), "log": str(self.log)})
        )
        self.command = [*command, str(self.file)]
        self.start()

    def start(self) -> None:
        with self.complaints.open("a") as stderr:
            self.process = subprocess.Popen(self.command, stderr=stderr)

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        return request(self.control, {"do": do, **more})

    def answers(self) -> bool:
        assert self.process.poll() is None, self.complaints.read_text()
        try:
            return bool(self.ask("status")["ok"])
        except ControlError:
            return False

    def go(self) -> "RunningNode":
        until(self.answers)
        self.ask("go")
        return self

    def ready(self) -> "RunningNode":
        until(lambda: self.ask("status")["ready"])
        return self

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        records = [json.loads(line) for line in lines]
        return [record for record in records if not kinds or record["event"] in kinds]

    def publish(self, topic: str = "alert", priority: int = 5, size: int = 100) -> str:
        identity = self.ask("publish", topic=topic, priority=priority, size=size)["id"]
        assert isinstance(identity, str)
        return identity

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Lab:
    """Nodes that belong together; all end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.command = [sys.executable, "-m", "nodes"]
        self.nodes: list[RunningNode] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]

    def node(self, kind: str, name: str, /, **more: Any) -> RunningNode:
        place = {"host": "127.0.0.1", "port": self.port}
        config = {
            "lab": "slope",
            "run": "r1",
            "name": name,
            "number": len(self.nodes) + 1,
            "kind": kind,
            "seed": 1,
            "overlay": {"method": "star", "parameters": {}},
            "delivery": {"method": "fifo", "parameters": {}},
            "listen": place if kind == "broker" else None,
            "brokers": [] if kind == "broker" else [{"name": "b1", **place}],
            "topics": [],
            **more,
        }
        node = RunningNode(self.folder, self.command, config)
        self.nodes.append(node)
        return node

    def trio(self) -> tuple[RunningNode, RunningNode, RunningNode]:
        broker = self.node("broker", "b1")
        sensor = self.node("sensor", "s1")
        subscriber = self.node("subscriber", "c1", topics=["alert"])
        for node in self.nodes:
            node.go()
        for node in self.nodes:
            node.ready()
        return broker, sensor, subscriber

    def end(self) -> None:
        for node in self.nodes:
            if node.process.poll() is None:
                node.kill()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def received(node: RunningNode) -> list[str]:
    return [record["id"] for record in node.events("receive")]


def test_what_a_sensor_publishes_a_subscriber_receives(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    first = sensor.publish(priority=5, size=100_000)
    sensor.publish(topic="nobody wants this")
    last = sensor.publish(priority=1, size=0)
    until(lambda: received(subscriber) == [first, last])

    sent = sensor.events("publish")[0]
    got = subscriber.events("receive")[0]
    assert got == {
        "t": got["t"],
        "node": "c1",
        "event": "receive",
        "id": first,
        "topic": "alert",
        "priority": 5,
        "size": 100_000,
        "hops": 2,
        "published_ns": sent["t"],
        "origin": 2,
    }
    assert got["t"] >= sent["t"]
    assert sent["late_ns"] == 0
    status = sensor.ask("status")
    assert (status["state"], status["published"], status["peers"]) == ("running", 3, ["b1"])
    assert subscriber.ask("status")["received"] == 2
    assert broker.ask("status")["peers"] == ["c1", "s1"]
    assert [event["event"] for event in subscriber.events()][:3] == ["start", "connect", "ready"]


def test_a_node_waits_at_its_gate(lab: Lab) -> None:
    broker, sensor = lab.node("broker", "b1"), lab.node("sensor", "s1")
    for node in (broker, sensor):
        until(node.answers)
        status = node.ask("status")
        assert (status["state"], status["ready"]) == ("waiting", False)
    with pytest.raises(ControlError, match="s1 is waiting; it publishes only while it runs"):
        sensor.publish()
    with pytest.raises(OSError, match="refused"), socket.create_connection(("127.0.0.1", lab.port)):
        pass
    assert [node.stop() for node in (broker, sensor)] == [0, 0]
    assert not sensor.control.exists()
    assert [event["event"] for event in sensor.events()] == ["start", "stop"]


def test_a_broker_killed_and_started_again_is_found_again(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    before = sensor.publish()
    until(lambda: received(subscriber) == [before])
    broker.kill()
    until(lambda: not sensor.ask("status")["peers"])
    meanwhile = [sensor.publish(size=size) for size in (10, 200_000, 30)]
    assert sensor.ask("status")["queued"] == 3

    sensor.process.send_signal(signal.SIGSTOP)  # so that the subscriber is there first
    broker.start()
    broker.go()
    subscriber.ready()
    sensor.process.send_signal(signal.SIGCONT)
    until(lambda: received(subscriber) == [before, *meanwhile])
    after = sensor.publish()
    until(lambda: received(subscriber) == [before, *meanwhile, after])
    assert len(subscriber.events("ready")) == 2
    assert len(subscriber.events("disconnect")) == 1
    assert sensor.ask("status")["queued"] == 0


def test_a_sensor_started_again_does_not_repeat_its_ids(lab: Lab) -> None:
    _, sensor, subscriber = lab.trio()
    before = [sensor.publish() for _ in range(3)]
    until(lambda: received(subscriber) == before)
    sensor.kill()
    sensor.start()
    sensor.go().ready()
    after = sensor.publish()
    assert after not in before
    until(lambda: received(subscriber) == [*before, after])


def test_a_torn_line_in_its_log_keeps_no_sensor_from_starting_again(lab: Lab) -> None:
    sensor = lab.node("sensor", "s1").go()
    before = [sensor.publish()]
    for _ in range(2):
        sensor.kill()
        with sensor.log.open("a") as log:
            log.write('{"t": 1, "node": "s1", "event": "publish", "id": "00000001000000')
        sensor.start()
        until(lambda: sensor.process.poll() is not None or sensor.control.exists())
        sensor.go()
        before.append(sensor.publish())
    assert [int(identity, 16) & 0xFFFFFFFF for identity in before] == [1, 3, 5]


def test_sigterm_hands_over_what_is_queued_and_ends_with_0(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    sizes = [700_000] * 10
    published = [sensor.publish(size=size) for size in sizes]
    assert sensor.stop() == 0
    until(lambda: received(subscriber) == published)
    assert sensor.events("stop")[0]["published"] == len(sizes)
    subscriber.process.send_signal(
        signal.SIGINT
    )  # Ctrl-C in a terminal reaches all; nodes do not care
    assert subscriber.ask("status")["state"] == "running"
    assert broker.stop() == 0
    assert subscriber.stop() == 0
    assert subscriber.events("stop")[0]["received"] == len(sizes)
    assert "the broker stops" in subscriber.events("disconnect")[0]["reason"]


def flood(sensor: RunningNode) -> None:
    """More than the kernel takes, and more than the queue."""
    for _ in range(40):
        sensor.publish(size=1_000_000)


def test_a_sensor_whose_broker_hangs_ends_all_the_same(lab: Lab) -> None:
    broker, sensor, _ = lab.trio()
    broker.process.send_signal(signal.SIGSTOP)
    with pytest.raises(ControlError, match=r"message .* was dropped: 1000033 bytes do not fit"):
        flood(sensor)
    assert sensor.ask("status")["queued"] > 0
    assert sensor.events("drop")
    assert sensor.stop() == 0
    (ended,) = sensor.events("disconnect")
    assert ended["reason"] == "the node stops"
    assert ended["queued"] > 0


def test_a_broker_whose_subscriber_hangs_serves_the_others_and_ends(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    other = lab.node("subscriber", "c2", topics=["alert"]).go().ready()
    subscriber.process.send_signal(signal.SIGSTOP)
    published = []
    for _ in range(20):
        published.append(sensor.publish(size=1_000_000))
        until(lambda: received(other) == published)
    assert {drop["peer"] for drop in broker.events("drop")} == {"c1"}
    assert broker.stop() == 0
    assert {ended["peer"] for ended in broker.events("disconnect")} == {"s1", "c1", "c2"}


def test_a_timeline_is_played_in_order_and_each_delay_is_told(lab: Lab) -> None:
    _, sensor, subscriber = lab.trio()
    start_ns = time.time_ns() + 100_000_000
    at = [80_000_000, 0, 40_000_000, 40_000_000, 3_600_000_000_000]
    actions = [
        {"at_ns": at_ns, "topic": "alert", "priority": 1 + index, "size": index}
        for index, at_ns in enumerate(at)
    ]
    assert sensor.ask("play", start_ns=start_ns, actions=actions)["accepted"] == 5
    until(lambda: len(received(subscriber)) == 4)
    assert sensor.ask("status")["playing"] == 1
    played = sensor.events("publish")
    assert [record["size"] for record in played] == [1, 2, 3, 0]
    for record, due in zip(played, [0, 40_000_000, 40_000_000, 80_000_000], strict=True):
        assert record["late_ns"] == record["t"] - (start_ns + due)
        assert record["late_ns"] >= 0
    assert sensor.stop() == 0  # and does not wait an hour


def test_a_timeline_with_a_mistake_is_refused_as_a_whole(lab: Lab) -> None:
    _, sensor, subscriber = lab.trio()
    good = {"at_ns": 0, "topic": "alert", "priority": 1, "size": 1}
    with pytest.raises(ControlError, match=r"actions\[1\]: priority is 9"):
        sensor.ask("play", start_ns=0, actions=[good, {**good, "priority": 9}])
    with pytest.raises(ControlError, match="c1 is a subscriber; only sensors publish"):
        subscriber.publish()
    assert sensor.events("publish") == []


def stranger(lab: Lab, *messages: bytes | str) -> str:
    """Connect, say these things, wait for the end; how the broker ended it."""
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as line:
        return say(line, *messages)


def say(line: ClientConnection, *messages: bytes | str) -> str:
    with suppress(ConnectionClosed):
        for message in messages:
            line.send(message)
        while True:
            line.recv(timeout=PATIENCE_S)
    return f"{line.close_code} {line.close_reason}"


def fourteen(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert len(events) <= 14
    return events if len(events) == 14 else []


def test_hostile_guests_are_shown_the_door_and_the_broker_goes_on(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    good = hello("x1", 99, "slope")
    assert "text message" in stranger(lab, "hello?")
    assert "not a HELLO: 3 bytes" in stranger(lab, b"\0\1\2")
    assert "this node speaks 1" in stranger(lab, b"\x09" + good[1:])
    assert "is of the lab 'valley'; this is 'slope'" in stranger(lab, hello("x1", 99, "valley"))
    assert "PUBLISH before HELLO" in stranger(lab, encode(Message(Kind.PUBLISH, topic="alert")))
    assert "without name and lab" in stranger(
        lab, encode(Message(Kind.HELLO, payload=b"[" * 100_000))
    )
    assert stranger(lab, good, b"garbage").startswith("1002 7 bytes")
    assert stranger(lab, good, "text").startswith("1002 a text message")
    assert "HELLO has no place" in stranger(lab, good, good)
    assert stranger(lab, good, bytes(MAX_MESSAGE_BYTES + 1)).startswith("1009")
    assert stranger(lab, bytes(MAX_MESSAGE_BYTES + 1)).startswith("1009")
    for noise in (os.urandom(5000) + b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", lab.port)) as line, suppress(ConnectionError):
            line.sendall(noise)
            line.shutdown(socket.SHUT_WR)
            while line.recv(5000):
                pass

    identity = sensor.publish()
    until(lambda: received(subscriber) == [identity])
    reasons = [refused["reason"] for refused in until(lambda: fourteen(broker.events("refuse")))]
    assert sum(f"exceeds limit of {MAX_MESSAGE_BYTES} bytes" in reason for reason in reasons) == 2
    assert sum("no WebSocket handshake: " in reason for reason in reasons) == 3
    assert broker.complaints.read_text() == ""
    assert broker.ask("status")["peers"] == ["c1", "s1"]


def test_a_guest_that_never_speaks_does_not_keep_the_broker_from_stopping(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    with socket.create_connection(("127.0.0.1", lab.port)):
        assert broker.stop() == 0


def test_a_node_that_comes_twice_replaces_itself(lab: Lab) -> None:
    broker, _, _ = lab.trio()
    with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as older:
        older.send(hello("x1", 99, "slope"))
        until(lambda: "x1" in broker.ask("status")["peers"])
        with connect(f"ws://127.0.0.1:{lab.port}/", proxy=None, compression=None) as newer:
            newer.send(hello("x1", 99, "slope"))
            assert "replaced by a newer connection" in say(older)
            assert newer.recv(timeout=PATIENCE_S)  # HELLO
            assert broker.ask("status")["peers"] == ["c1", "s1", "x1"]


def test_a_broker_of_another_lab_is_refused_by_its_guests(lab: Lab) -> None:
    def impostor(line: ServerConnection) -> None:
        line.recv()
        line.send(hello("b1", 1, "valley"))
        line.recv()

    with serve(impostor, "127.0.0.1", lab.port, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            sensor = lab.node("sensor", "s1").go()
            (refused,) = until(lambda: sensor.events("refuse"))
            assert "is of the lab 'valley'" in refused["reason"]
            assert not sensor.ask("status")["ready"]
            assert sensor.stop() == 0
        finally:
            server.shutdown()
            thread.join()


def test_a_full_queue_drops_the_newest_and_says_so(lab: Lab) -> None:
    delivery = {"method": "fifo", "parameters": {"limit_bytes": 1000}}
    sensor = lab.node("sensor", "s1", delivery=delivery).go()  # there is no broker
    kept = sensor.publish(size=800)
    with pytest.raises(ControlError, match=r"message .* was dropped: 833 bytes do not fit"):
        sensor.publish(size=800)
    (drop,) = sensor.events("drop")
    assert "do not fit" in drop["reason"]
    assert [record["id"] for record in sensor.events("publish")] == [kept, drop["id"]]
    assert sensor.ask("status")["queued"] == 1


def test_the_largest_payload_passes_and_one_byte_more_is_refused_at_once(lab: Lab) -> None:
    _, sensor, subscriber = lab.trio()
    identity = sensor.publish(size=MAX_PAYLOAD_BYTES)
    until(lambda: received(subscriber) == [identity])
    with pytest.raises(ControlError, match=f"it goes from 0 to {MAX_PAYLOAD_BYTES} bytes"):
        sensor.publish(size=MAX_PAYLOAD_BYTES + 1)
    assert len(sensor.events("publish")) == 1


def test_a_subscriber_becomes_ready_however_small_the_queues_are(lab: Lab) -> None:
    narrow = {"delivery": {"method": "fifo", "parameters": {"limit_bytes": 1}}}
    lab.node("broker", "b1", **narrow).go()
    topics = [f"slope/{i}/" + "t" * 200 for i in range(500)]
    subscriber = lab.node("subscriber", "c1", topics=topics, **narrow).go().ready()
    assert not subscriber.events("drop")


def test_a_guest_that_wants_too_much_is_refused(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    wishes = [encode(Message(Kind.SUBSCRIBE, topic=f"t{i}")) for i in range(MAX_SUBSCRIPTIONS + 1)]
    assert "1002 more than 1024 subscriptions" in stranger(lab, hello("x1", 99, "slope"), *wishes)
    (refused,) = broker.events("refuse")
    assert (refused["peer"], refused["reason"]) == ("x1", "more than 1024 subscriptions")


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ({"kind": "volcano"}, "kind is 'volcano'; it must be one of broker, sensor, subscriber"),
        ({"delivery": {"method": "pigeon", "parameters": {}}}, "this node knows fifo"),
        ({"overlay": {"method": "star", "parameters": {"x": 1}}}, "star has no parameter 'x'"),
        ({"listen": None}, "a broker needs `listen`"),
    ],
)
def test_a_wrong_configuration_is_one_sentence_and_exit_code_2(
    lab: Lab, mistake: dict[str, Any], sentence: str
) -> None:
    node = lab.node("broker", "b1", **mistake)
    assert node.process.wait(PATIENCE_S) == 2
    assert sentence in node.complaints.read_text()
    assert node.complaints.read_text().count("\n") == 1


def test_a_taken_address_is_one_sentence_and_exit_code_1(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", lab.port)):
        node = lab.node("broker", "b1").go()
        assert node.process.wait(PATIENCE_S) == 1
    assert f"b1: cannot listen on 127.0.0.1:{lab.port}" in node.complaints.read_text()
    assert node.complaints.read_text().count("\n") == 1


def test_a_node_ends_quietly_while_somebody_talks_with_it(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(broker.control))
        line.sendall(b'{"do": "status"}\n')
        assert line.recv(5000)
        assert broker.stop() == 0
    assert broker.complaints.read_text() == ""


def test_a_log_that_cannot_be_written_is_one_sentence_and_exit_code_1(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "b1.jsonl").mkdir()
    node = lab.node("broker", "b1")
    assert node.process.wait(PATIENCE_S) == 1
    assert node.complaints.read_text().startswith("b1: cannot write its log ")
    assert node.complaints.read_text().count("\n") == 1


def test_the_zipapp_needs_nothing_but_python(lab: Lab, tmp_path: Path) -> None:
    pyz = zipapp.build(tmp_path / "nodes.pyz")
    # -I: nothing of the environment, -S: no installed packages at all
    lab.command = [sys.executable, "-I", "-S", str(pyz)]
    broker, sensor, subscriber = lab.trio()
    identity = sensor.publish(size=50_000)
    until(lambda: received(subscriber) == [identity])
    assert [node.stop() for node in (sensor, subscriber, broker)] == [0, 0, 0]
