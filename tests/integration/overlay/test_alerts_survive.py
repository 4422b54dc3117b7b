"""Nodes are killed at random while alerts are published: each alert reaches each subscriber, once."""

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from support.nodes.loopback_nodes import RESENT_S, Lab, RunningNode, received, until

FAULTS_S = 15.0
LEAST_KILLS = 4


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.end()


class Killing:
    """Kills nodes at random and starts them again; one broker always runs."""

    def __init__(self, random: Random, nodes: list[RunningNode], brokers: list[RunningNode]):
        self._random = random
        self._nodes = nodes
        self._brokers = brokers
        self._next = time.monotonic() + 1
        self._down: dict[RunningNode, float] = {}  # when each starts again
        self.kills = 0

    def is_running(self, node: RunningNode) -> bool:
        return node not in self._down

    def step(self) -> None:
        now = time.monotonic()
        self._start(now)
        if now < self._next:
            return
        self._next = now + self._random.uniform(0.5, 2.0)
        possible = [node for node in self._nodes if self.is_running(node)]
        if sum(map(self.is_running, self._brokers)) == 1:
            possible = [node for node in possible if node not in self._brokers]
        if possible:
            victim = self._random.choice(possible)
            victim.kill()
            self.kills += 1
            self._down[victim] = now + self._random.uniform(0.2, 4.0)

    def end(self) -> None:
        self._start(float("inf"))

    def _start(self, now: float) -> None:
        for node in [node for node, at in self._down.items() if at <= now]:
            del self._down[node]
            node.start()
            node.go()


@pytest.mark.parametrize(("method", "seed"), [("sg-tbps", 1), ("fan-tbps", 2)])
def test_each_alert_arrives_once_although_nodes_are_killed_at_random(
    lab: Lab, method: str, seed: int
) -> None:
    overlay = {"method": method, "parameters": {"heartbeat_s": 1, "heartbeat_budget": 1000}}
    places = [
        {"name": f"b{i}", "number": i, "host": "127.0.0.1", "port": lab.free_port()}
        for i in range(1, 5)
    ]
    brokers = [
        lab.node(
            "broker",
            place["name"],
            listen={"host": place["host"], "port": place["port"]},
            brokers=[other for other in places if other is not place],
            seeds=[other["name"] for other in places if other is not place][:2],
            overlay=overlay,
        )
        for place in places
    ]
    sensors = [
        lab.node(
            "sensor",
            f"s{i}",
            brokers=places[i:] + places[:i],
            overlay=overlay,
            journal=str(lab.folder / f"s{i}.journal"),
        )
        for i in (0, 1)
    ]
    subscribers = [
        lab.node(
            "subscriber",
            f"c{i}",
            brokers=places[i:] + places[:i],
            overlay=overlay,
            topics=["alert"],
        )
        for i in (1, 2, 3)
    ]
    for node in lab.nodes:
        node.go()
    for node in lab.nodes:
        node.ready()
    random = Random(seed)
    killing = Killing(random, lab.nodes, brokers)
    alerts: list[str] = []
    end = time.monotonic() + FAULTS_S
    while time.monotonic() < end or killing.kills < LEAST_KILLS:
        killing.step()
        if running := [sensor for sensor in sensors if killing.is_running(sensor)]:
            level = random.choice([1, 3, 4, 5])
            identity = random.choice(running).publish(priority=level, size=200)
            if level >= 3:
                alerts.append(identity)
        time.sleep(0.1)
    killing.end()
    until(lambda: all(sensor.ask("status")["pending"] == 0 for sensor in sensors), RESENT_S)
    until(lambda: all(set(alerts) <= set(received(each)) for each in subscribers), RESENT_S)
    for subscriber in subscribers:
        got = [each["id"] for each in subscriber.events("receive") if each["priority"] >= 3]
        assert sorted(got) == sorted(alerts)
