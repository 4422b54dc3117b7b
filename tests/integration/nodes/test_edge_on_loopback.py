"""Sensors and subscribers that change their broker, are killed and come back: real processes, an overlay of brokers."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.nodes.loopback_nodes import RESENT_S, Lab, RunningNode, received, until
from support.nodes.slow_link import SlowLink

OVERLAY = {"method": "sg-tbps", "parameters": {"heartbeat_s": 1}}


class Slope:
    """Some brokers, a sensor whose nearest broker is the first, and a subscriber whose nearest is the last."""

    def __init__(self, folder: Path, brokers: int, **sensor_config: Any) -> None:
        self.lab = Lab(folder)
        places = [
            {"name": f"b{i}", "number": i, "host": "127.0.0.1", "port": self.lab.free_port()}
            for i in range(1, brokers + 1)
        ]
        self.brokers = [
            self.lab.node(
                "broker",
                place["name"],
                listen={"host": place["host"], "port": place["port"]},
                brokers=[other for other in places if other is not place],
                seeds=[other["name"] for other in places if other is not place][:1],
                overlay=OVERLAY,
            )
            for place in places
        ]
        self.journal = folder / "s1.journal"
        defaults = {"brokers": places, "overlay": OVERLAY, "journal": str(self.journal)}
        self.sensor = self.lab.node("sensor", "s1", **defaults | sensor_config)
        self.subscriber = self.lab.node(
            "subscriber", "c1", brokers=places[::-1], topics=["alert"], overlay=OVERLAY
        )

    def begin(self) -> "Slope":
        """Clients come second: one that finds no broker for 5 s goes on to another than the nearest."""
        for nodes in (self.brokers, [self.sensor, self.subscriber]):
            for node in nodes:
                node.go()
            for node in nodes:
                node.ready()
        return self

    def all_arrive_once(self, published: list[str]) -> bool:
        until(lambda: set(published) <= set(received(self.subscriber)), RESENT_S)
        until(lambda: self.sensor.ask("status")["pending"] == 0, RESENT_S)
        return sorted(received(self.subscriber)) == sorted(published)


def restart(node: RunningNode) -> None:
    node.start()
    node.go()


@pytest.fixture
def slopes(tmp_path: Path) -> Iterator[Any]:
    made: list[Slope] = []

    def make(brokers: int, **sensor_config: Any) -> Slope:
        made.append(Slope(tmp_path, brokers, **sensor_config))
        return made[-1]

    yield make
    for slope in made:
        slope.lab.end()


def test_clients_of_crashed_brokers_move_and_each_alert_arrives_once(
    slopes: Any,
) -> None:
    slope = slopes(brokers=3).begin()
    published = [slope.sensor.publish() for _ in range(5)]
    slope.brokers[0].kill()
    published += [slope.sensor.publish() for _ in range(5)]
    assert slope.all_arrive_once(published)
    assert slope.sensor.ask("status")["broker"] == "b2"
    assert slope.subscriber.ask("status")["broker"] == "b3"
    slope.brokers[2].kill()
    published += [slope.sensor.publish() for _ in range(5)]
    until(lambda: set(published) <= set(received(slope.subscriber)), RESENT_S)
    assert slope.subscriber.ask("status")["broker"] == "b2"
    restart(slope.brokers[0])  # it has lost all peers, may be isolated, and accepts nothing
    assert slope.all_arrive_once(published)


def test_messages_of_a_killed_sensor_arrive_after_its_restart(
    slopes: Any,
) -> None:
    slope = slopes(brokers=2).begin()
    published = [slope.sensor.publish()]
    assert slope.all_arrive_once(published)
    for broker in slope.brokers:
        broker.kill()
    published += [slope.sensor.publish() for _ in range(3)]
    slope.sensor.kill()
    for node in (*slope.brokers, slope.sensor):
        restart(node)
    assert slope.all_arrive_once(published)
    published.append(slope.sensor.publish())
    assert slope.all_arrive_once(published), "ids continue after the last one"


def test_a_killed_subscriber_receives_missed_messages_once_after_its_restart(slopes: Any) -> None:
    slope = slopes(brokers=2).begin()
    published = [slope.sensor.publish() for _ in range(3)]
    assert slope.all_arrive_once(published)
    slope.subscriber.kill()
    published += [slope.sensor.publish() for _ in range(3)]
    until(lambda: slope.sensor.ask("status")["pending"] == 0)
    restart(slope.subscriber)
    assert slope.all_arrive_once(published)


def test_a_broker_that_stops_sends_its_clients_to_the_next_broker_at_once(
    slopes: Any,
) -> None:
    slope = slopes(brokers=2).begin()
    assert slope.brokers[0].stop() == 0
    until(lambda: slope.sensor.ask("status")["broker"] == "b2")
    lost = slope.sensor.events("disconnect")[-1]
    found = slope.sensor.events("connect")[-1]
    assert found["peer"] == "b2"
    assert found["t"] > lost["t"]
    assert slope.sensor.events("unreachable") == []
    assert slope.all_arrive_once([slope.sensor.publish()])


def test_a_sensor_that_cannot_write_its_journal_reports_it_once_and_publishes(
    slopes: Any, tmp_path: Path
) -> None:
    slope = slopes(brokers=1, journal=str(tmp_path / "nowhere" / "journal")).begin()
    assert slope.all_arrive_once([slope.sensor.publish() for _ in range(3)])
    (complaint,) = slope.sensor.events("journal")
    assert complaint["reason"] == "cannot be written: No such file or directory"


def test_a_sensor_in_a_star_writes_no_journal(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    try:
        lab.node("broker", "b1").go()
        sensor = lab.node("sensor", "s1", journal=str(tmp_path / "journal")).go().ready()
        sensor.publish()
        assert sensor.ask("status")["pending"] == 0
        assert not (tmp_path / "journal").exists()
    finally:
        lab.end()


@pytest.mark.parametrize("behind_slow_link", ["sensor", "subscriber"])
def test_a_long_message_on_a_slow_link_does_not_count_as_silence(
    tmp_path: Path, behind_slow_link: str
) -> None:
    """The message takes 6 s; a peer that is silent for 3 s counts as dead (a busy machine may delay it for so long)."""
    overlay = {"method": "sg-tbps", "parameters": {"heartbeat_s": 1, "heartbeat_budget": 1000}}
    lab = Lab(tmp_path)
    with SlowLink(lab.port, bytes_per_s=100_000) as link:
        slow = [{"name": "b1", "number": 1, "host": "127.0.0.1", "port": link.port}]
        slow_config: dict[str, Any] = {behind_slow_link: {"brokers": slow}}
        try:
            lab.node("broker", "b1", overlay=overlay)
            sensor = lab.node("sensor", "s1", overlay=overlay, **slow_config.get("sensor", {}))
            config = {"topics": ["alert"], **slow_config.get("subscriber", {})}
            subscriber = lab.node("subscriber", "c1", overlay=overlay, **config)
            for node in lab.nodes:
                node.go()
            for node in lab.nodes:
                node.ready()
            long = sensor.publish(size=600_000)
            until(lambda: received(subscriber) == [long])
            until(lambda: sensor.ask("status")["pending"] == 0)
            assert [node.events("disconnect") for node in lab.nodes] == [[], [], []]
        finally:
            lab.end()


def test_a_sensor_leaves_a_broker_that_hangs(slopes: Any) -> None:
    slope = slopes(brokers=3).begin()
    slope.brokers[0].process.send_signal(signal.SIGSTOP)
    published = [slope.sensor.publish()]
    assert slope.all_arrive_once(published)
    assert slope.sensor.ask("status")["broker"] == "b2"
