"""Broker, sensor and subscriber as real processes on the loopback, controlled over their real control sockets."""

import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.nodes.loopback_nodes import PATIENCE_S, Lab, RunningNode, received, until
from testbed.backends.common import zipapp
from testbed.control import ControlError


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


def test_a_subscriber_receives_the_messages_of_a_sensor(lab: Lab) -> None:
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
    until(lambda: not sensor.ask("status")["peers"] and not subscriber.ask("status")["peers"])
    meanwhile = [sensor.publish(size=size) for size in (10, 200_000, 30)]
    assert sensor.ask("status")["queued"] == 3

    sensor.process.send_signal(signal.SIGSTOP)  # so that the subscriber is first
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


def test_a_sensor_starts_again_after_a_torn_line_in_its_log(lab: Lab) -> None:
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


def test_a_sensor_sends_its_queue_on_sigterm_and_exits_with_0(lab: Lab) -> None:
    broker, sensor, subscriber = lab.trio()
    sizes = [700_000] * 10
    published = [sensor.publish(size=size) for size in sizes]
    assert sensor.stop() == 0
    until(lambda: received(subscriber) == published)
    assert sensor.events("stop")[0]["published"] == len(sizes)
    # Ctrl-C in a terminal reaches all processes; nodes ignore it.
    subscriber.process.send_signal(signal.SIGINT)
    assert subscriber.ask("status")["state"] == "running"
    assert broker.stop() == 0
    assert subscriber.stop() == 0
    assert subscriber.events("stop")[0]["received"] == len(sizes)
    assert "the broker stops" in subscriber.events("disconnect")[0]["reason"]


def flood(sensor: RunningNode) -> None:
    """Publish more than the kernel and the queue hold."""
    for _ in range(40):
        sensor.publish(size=1_000_000)


def test_a_sensor_whose_broker_hangs_stops_on_sigterm(lab: Lab) -> None:
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


def test_a_timeline_is_played_in_order_and_each_delay_is_logged(lab: Lab) -> None:
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
    assert sensor.stop() == 0  # without waiting for the last publication, in an hour


def test_a_timeline_with_a_mistake_is_refused_as_a_whole(lab: Lab) -> None:
    _, sensor, subscriber = lab.trio()
    good = {"at_ns": 0, "topic": "alert", "priority": 1, "size": 1}
    with pytest.raises(ControlError, match=r"actions\[1\]: priority is 9"):
        sensor.ask("play", start_ns=0, actions=[good, {**good, "priority": 9}])
    with pytest.raises(ControlError, match="c1 is a subscriber; only sensors publish"):
        subscriber.publish()
    assert sensor.events("publish") == []


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


def test_a_node_stops_without_complaints_while_a_control_connection_is_open(lab: Lab) -> None:
    broker = lab.node("broker", "b1").go().ready()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(broker.control))
        connection.sendall(b'{"do": "status"}\n')
        assert connection.recv(5000)
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
