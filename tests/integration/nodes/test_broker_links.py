"""Brokers as real processes on the loopback: they find each other, forward clients' messages, and lose each other."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodes.overlay import BETWEEN_BROKERS
from support.nodes.loopback_nodes import RESENT_S, Lab, RunningNode, received, until
from support.processor_wait import ProcessorWait


class Graph:
    """A lab of brokers b1, b2, ... and clients that know them all, their own broker first."""

    def __init__(self, folder: Path, size: int, method: str, **parameters: Any) -> None:
        self.lab = Lab(folder)
        self.overlay = {"method": method, "parameters": parameters}
        self.places = [
            {"name": f"b{i}", "number": i, "host": "127.0.0.1", "port": self.lab.free_port()}
            for i in range(1, size + 1)
        ]
        self.brokers = [self._broker(place) for place in self.places]

    def _broker(self, place: dict[str, Any]) -> RunningNode:
        return self.lab.node(
            "broker",
            place["name"],
            number=place["number"],
            listen={"host": place["host"], "port": place["port"]},
            brokers=[other for other in self.places if other is not place],
            seeds=[other["name"] for other in self.places[:2] if other is not place],
            overlay=self.overlay,
        )

    def client(self, kind: str, name: str, broker: int, **more: Any) -> RunningNode:
        """A sensor or subscriber at the broker of this number."""
        nearest = self.places[broker - 1 :] + self.places[: broker - 1]
        journal = str(self.lab.folder / f"{name}.journal") if kind == "sensor" else None
        return self.lab.node(
            kind, name, brokers=nearest, overlay=self.overlay, journal=journal, **more
        )

    def go(self) -> None:
        """Clients come second: one that finds no broker for 5 s goes on to another than its own."""
        clients = [node for node in self.lab.nodes if node not in self.brokers]
        for nodes in (self.brokers, clients):
            for node in nodes:
                node.go()
            for node in nodes:
                node.ready()


@pytest.fixture
def graphs(tmp_path: Path) -> Iterator[list[Graph]]:
    made: list[Graph] = []
    yield made
    for graph in made:
        graph.lab.end()


def has_all(node: RunningNode, sent: list[str]) -> bool:
    return set(received(node)) >= set(sent)


def publish_for(sensor: RunningNode, seconds: float) -> list[str]:
    """Publish many alarms a second; return their ids."""
    end = time.monotonic() + seconds
    sent = []
    while time.monotonic() < end:
        sent.append(sensor.publish(priority=5))
        time.sleep(0.05)
    return sent


def all_have_each_once(subscribers: list[RunningNode], sent: list[str]) -> None:
    for subscriber in subscribers:
        until(lambda: has_all(subscriber, sent), RESENT_S)  # noqa: B023
    for subscriber in subscribers:
        assert sorted(received(subscriber)) == sorted(sent)


@pytest.mark.parametrize("method", BETWEEN_BROKERS)
def test_messages_published_at_one_broker_reach_subscribers_at_the_others(
    tmp_path: Path, graphs: list[Graph], method: str
) -> None:
    graph = Graph(tmp_path, 4, method)
    graphs.append(graph)
    sensor = graph.client("sensor", "s1", broker=1)
    subscribers = [
        graph.client("subscriber", f"c{broker}", broker, topics=["alert"]) for broker in (1, 2, 4)
    ]
    graph.go()
    sent = [sensor.publish(priority=level) for level in (1, 3, 5)]
    all_have_each_once(subscribers, sent)
    until(lambda: sensor.ask("status")["pending"] == 0, RESENT_S)
    for node in graph.lab.nodes:
        assert node.complaints.read_text() == ""
        assert not node.events("refuse", "drop")


def graph_with_clients(
    tmp_path: Path, graphs: list[Graph]
) -> tuple[Graph, RunningNode, list[RunningNode]]:
    """Five brokers, a subscriber at each, and a sensor at the first."""
    graph = Graph(tmp_path, 5, "sg-tbps")
    graphs.append(graph)
    sensor = graph.client("sensor", "s1", broker=1)
    subscribers = [
        graph.client("subscriber", f"c{broker}", broker, topics=["alert"]) for broker in range(1, 6)
    ]
    graph.go()
    return graph, sensor, subscribers


@pytest.mark.parametrize("victim", [1, 3])
def test_no_alarm_is_lost_when_a_broker_is_killed(
    tmp_path: Path, graphs: list[Graph], victim: int
) -> None:
    graph, sensor, subscribers = graph_with_clients(tmp_path, graphs)
    sent = publish_for(sensor, 0.5)
    graph.brokers[victim - 1].kill()
    sent += publish_for(sensor, 2.0)
    all_have_each_once(subscribers, sent)
    until(lambda: sensor.ask("status")["pending"] == 0, RESENT_S)
    moved = subscribers[victim - 1]
    assert moved.ask("status")["broker"] == graph.brokers[victim % 5].name


def test_a_broker_serves_clients_again_after_a_kill_and_a_restart(
    tmp_path: Path, graphs: list[Graph]
) -> None:
    graph, sensor, subscribers = graph_with_clients(tmp_path, graphs)
    broker = graph.brokers[2]
    broker.kill()
    sent = publish_for(sensor, 1.0)
    broker.start()
    broker.go().ready()
    newcomer = graph.client("subscriber", "c9", broker=3, topics=["alert"]).go().ready()
    assert newcomer.ask("status")["broker"] == broker.name
    later = publish_for(sensor, 0.5)
    all_have_each_once(subscribers, sent + later)
    until(lambda: has_all(newcomer, later))


def test_clients_of_a_broker_that_stops_move_to_another_at_once(
    tmp_path: Path, graphs: list[Graph]
) -> None:
    graph, sensor, subscribers = graph_with_clients(tmp_path, graphs)
    sent = publish_for(sensor, 0.5)
    moved, stopping = subscribers[2], graph.brokers[2]
    peers = stopping.ask("status")["peers"]
    waits = ProcessorWait([moved.process.pid, graph.brokers[3].process.pid])
    assert stopping.stop() == 0
    for peer in (node for node in graph.lab.nodes if node.name in peers):
        until(lambda: peer.events("disconnect"))  # noqa: B023 - called at once
        for event in peer.events("disconnect"):  # it closed each link, and did not just end
            assert event["peer"] == stopping.name
            assert event["reason"].startswith("received 1001 (going away) the broker stops; then")
    until(lambda: moved.ask("status")["broker"] == "b4" and moved.ask("status")["ready"])
    (left,) = moved.events("disconnect")
    at_b4 = [event for event in moved.events("connect") if event["peer"] == "b4"]
    assert (at_b4[0]["t"] - left["t"]) / 1e9 - waits.seconds() < 1.0
    assert moved.events("unreachable") == []
    sent += publish_for(sensor, 0.5)
    all_have_each_once(subscribers, sent)
    for node in graph.lab.nodes:
        assert node.complaints.read_text() == ""
