"""Many brokers in virtual time: links on demand, faults, and every urgent message exactly once."""

import json
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from nodes.overlay import METHODS
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND
from testbed.backends.simulated.play import PlayResult, play
from testbed.backends.simulated.trace import COUNTS, link_row, write_trace
from testbed.places import RunPlace
from testbed.scenario import TimedAction
from testbed.topology import load_text
from testbed.topology.model import ActionKind, NodeKind, Topology

FILE = """
name: mesh
seed: 3
defaults: {link: mvno-128k, broker: {link: hspa-7.2m}}
groups:
  halls: {kind: broker, count: 5}
  gauges: {kind: sensor, count: 4}
  sirens: {kind: subscriber, count: 3, topics: [alerts]}
overlay: {method: sg-tbps}
delivery: {method: preemptive}
scenario:
  duration: 40s
  settle: 40s
  events:
    - at: 1s
      publish: {from: "gauges[*]", topic: alerts, priority: 5, size: 200B, period: 3s, spread: 2s}
"""
FAULTS = """
    - at: 5s
      crash: {nodes: "halls[1..4]", share: 25%}
    - at: 12s
      cut: {nodes: "halls[1..4]", share: 25%}
    - at: 16s
      stop: {nodes: "halls[1..4]", share: 25%}
    - at: 25s
      start: {nodes: "halls[1..4]"}
    - at: 30s
      restore: {nodes: "halls[1..4]"}
"""


def run(topology: Topology) -> tuple[SimulatedLab, PlayResult]:
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), SECOND // 1000)
    return lab, play(lab, lambda seconds: None)


def events(lab: SimulatedLab, *names: str) -> list[dict[str, Any]]:
    lines = (line for name in names or lab.nodes for line in lab.nodes[name].log.lines)
    return [json.loads(line) for line in lines]


def received(lab: SimulatedLab) -> Counter[tuple[str, str]]:
    return Counter((e["node"], e["id"]) for e in events(lab) if e["event"] == "receive")


@pytest.mark.parametrize("method", [name for name in METHODS if name != "star"])
def test_every_method_brings_everything_once_over_links_between_brokers(method: str) -> None:
    lab, played = run(load_text(FILE.replace("sg-tbps", method), "mesh"))
    assert played.received == played.expected > 100
    assert set(received(lab).values()) == {1}
    brokers = {node.name for node in lab.topology.of_kind(NodeKind.BROKER)}
    between = [e for e in events(lab, *brokers) if e["event"] == "connect" and e["peer"] in brokers]
    assert between
    assert not [e for e in events(lab) if e["event"] in ("refuse", "drop")]


@pytest.mark.parametrize("seed", range(1, 5))
def test_nothing_urgent_is_lost_or_doubled_while_brokers_and_links_fail(seed: int) -> None:
    lab, played = run(replace(load_text(FILE + FAULTS, "mesh"), seed=seed))
    assert played.received == played.expected > 100
    assert set(received(lab).values()) == {1}
    logged = Counter(e["event"] for e in events(lab))
    assert logged["unreachable"]
    assert logged["lost-peer"]


def test_faults_are_the_same_each_time(tmp_path: Path) -> None:
    topology = load_text(FILE + FAULTS, "mesh")
    traces = []
    for name in ("one", "other"):
        lab, _ = run(topology)
        write_trace(lab, tmp_path / name)
        logs = [lab.nodes[node].log.lines for node in lab.nodes]
        traces.append((logs, (tmp_path / name / "messages.parquet").read_bytes()))
    assert traces[0] == traces[1]


def test_all_bytes_are_accounted_for_despite_faults() -> None:
    lab, _ = run(load_text(FILE + FAULTS, "mesh"))
    rows: dict[str, list[Any]] = {}
    layers = ("ethernet", "ip", "tcp", "retransmitted", "websocket", "label", "header", "payload")
    for capture in lab.captures:
        row = link_row(capture, {}, rows)
        assert set(COUNTS) < set(row)
        layered = sum(row[f"{name}_bytes"] for name in (*layers, "control", "udp_acks", "unread"))
        assert layered == row["wire_bytes"], capture.link


def at(lab: SimulatedLab, second: float, kind: ActionKind, *names: str) -> None:
    action = TimedAction(0, kind, names)
    lab.loop.at(round(second * SECOND), lab.apply, action)


def broker_of(lab: SimulatedLab, name: str) -> str:
    (broker,) = lab.nodes[name].links
    return broker


def test_a_client_that_loses_its_broker_retries_once_and_moves_to_the_next() -> None:
    topology = load_text(FILE, "mesh")
    first, second, *_ = topology.node("sirens-0").brokers
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), 0)
    at(lab, 10, ActionKind.CRASH, first)
    play(lab, lambda seconds: None)
    tried = [
        (e["event"], e["peer"])
        for e in events(lab, "sirens-0")
        if e["event"] in ("connect", "disconnect", "unreachable")
    ]
    assert tried == [
        ("connect", first),
        ("disconnect", first),
        ("unreachable", first),
        ("connect", second),
    ]
    assert broker_of(lab, "sirens-0") == second


def test_clients_do_not_retry_a_silent_broker() -> None:
    topology = load_text(FILE, "mesh")
    first, second, *_ = topology.node("gauges-0").brokers
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), 0)
    at(lab, 10, ActionKind.CUT, first)
    play(lab, lambda seconds: None)
    logged = [e for e in events(lab, "gauges-0") if "peer" in e]
    assert [(e["event"], e["peer"]) for e in logged] == [
        ("connect", first),
        ("disconnect", first),
        ("connect", second),
    ]
    assert logged[2]["t"] - logged[1]["t"] < SECOND


def test_a_broker_that_stops_in_order_disconnects_its_clients_at_once() -> None:
    topology = load_text(FILE, "mesh")
    first, second, *_ = topology.node("sirens-0").brokers
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), 0)
    at(lab, 10, ActionKind.STOP, first)
    play(lab, lambda seconds: None)
    logged = {
        e["event"]: e["t"] / SECOND - 1e9
        for e in events(lab, "sirens-0")
        if e["event"] in ("disconnect", "connect")
    }
    assert 10 < logged["disconnect"] < logged["connect"] < 11.5
    assert broker_of(lab, "sirens-0") == second
    assert [e["event"] for e in events(lab, first)][-1] == "stop"


def test_a_restarted_sensor_sends_its_unacknowledged_messages() -> None:
    topology = load_text(FILE, "mesh")
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), 0)
    at(lab, 9.99, ActionKind.CUT, "gauges-0")
    at(lab, 18, ActionKind.CRASH, "gauges-0")
    at(lab, 19, ActionKind.RESTORE, "gauges-0")
    at(lab, 20, ActionKind.START, "gauges-0")
    play(lab, lambda seconds: None)
    published = {e["id"]: e["t"] for e in events(lab, "gauges-0") if e["event"] == "publish"}
    while_cut = [identity for identity, t in published.items() if 10 < t / SECOND - 1e9 < 18]
    assert while_cut
    assert len(set(published)) == len(published)
    for identity in published:
        assert all(received(lab)[siren, identity] == 1 for siren in ("sirens-0", "sirens-1"))


def test_a_restarted_subscriber_gets_the_missed_messages_and_none_twice() -> None:
    topology = load_text(FILE, "mesh")
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), 0)
    at(lab, 12, ActionKind.CRASH, "sirens-0")
    at(lab, 25, ActionKind.START, "sirens-0")
    played = play(lab, lambda seconds: None)
    assert played.received == played.expected
    assert set(received(lab).values()) == {1}


def test_unused_links_between_brokers_are_closed_in_order() -> None:
    many = FILE.replace("count: 5", "count: 12").replace("sg-tbps}", "sg-tbps, max_links: 2}")
    lab, played = run(load_text(many, "mesh"))
    assert played.received == played.expected
    closed = [
        e["reason"]
        for e in events(lab)
        if e["event"] == "disconnect" and "halls" in e["node"] and "halls" in e["peer"]
    ]
    assert "not used" in closed
    assert set(closed) <= {"not used", "received 1000 (OK) not used; then sent 1000 (OK) not used"}


BUSY = """
name: mesh
seed: 3
defaults: {link: mvno-128k}
groups:
  halls: {kind: broker, count: 4}
  gauges: {kind: sensor, count: 4}
  sirens: {kind: subscriber, count: 3, topics: [readings]}
overlay: {method: sg-tbps}
delivery: {method: preemptive}
scenario:
  duration: 30s
  settle: 60s
  events:
    - at: 1s
      publish: {from: "gauges[*]", topic: readings, priority: 1, size: 2kB, period: 1s, spread: 1s}
"""


@pytest.mark.parametrize("seed", range(1, 6))
def test_links_closed_in_order_while_the_other_side_has_much_to_send_lose_nothing(
    seed: int,
) -> None:
    topology = replace(load_text(BUSY, "mesh"), seed=seed)
    lab = SimulatedLab(topology, RunPlace(Path("mesh-run")), SECOND // 1000)
    brokers = [node.name for node in topology.of_kind(NodeKind.BROKER)]
    closed_over = []  # a queue

    def part(_: None) -> None:
        for one, other in permutations(brokers, 2):
            node = lab.nodes[one]
            back = lab.nodes[other].links.get(one)
            if back is not None and back.scheduler.queued.messages > 1:
                side = node.side_of(other)
                if side is not None and node.links[other].idle and not back.closing_orderly:
                    closed_over.append(back.scheduler.queued.messages)
                    side.part()

    for second in range(5, 30):
        lab.loop.at(second * SECOND, part)
    played = play(lab, lambda seconds: None)
    assert sum(closed_over) > 50
    assert played.received == played.expected > 300
    assert set(received(lab).values()) == {1}
    # Both brokers have messages to send when the link is gone, so they connect to each other at once.
    assert not [e for e in events(lab) if e["event"] in ("unreachable", "lost-peer")]
    logged = [e for e in events(lab, *brokers) if e["event"] == "disconnect"]
    assert sum("not used" in e["reason"] for e in logged) >= 2 * len(closed_over) > 0
    assert not [e for e in logged if e["queued"] and e["peer"] in brokers]
