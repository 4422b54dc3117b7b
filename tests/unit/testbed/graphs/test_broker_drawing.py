"""The overlay of a topology's brokers, drawn: the graph is that of a run, and the publication can occur in a run."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodes.overlay.topics.keys import topic_of
from testbed.backends.simulated.lab import SimulatedLab
from testbed.backends.simulated.loop import SECOND
from testbed.cli.app import app
from testbed.graphs.brokers import Selection, broker_scenario, choose_publication
from testbed.graphs.overlay_svg import svg
from testbed.graphs.simulate import SimulatedOverlay, simulate
from testbed.places import RunPlace
from testbed.scenario import compile_timeline
from testbed.topology import load
from testbed.topology.model import NodeKind, Topology

GOLDEN = Path(__file__).parents[3] / "golden" / "graphs"
TEXT = """
name: hills
seed: 11
groups:
  huts: {kind: broker, count: 6}
  slopes: {kind: sensor, count: 5}
  sirens: {kind: subscriber, count: 4, topics: [alerts]}
nodes:
  office: {kind: subscriber, topics: [alerts, readings], brokers: "huts[0]"}
overlay: {method: METHOD}
scenario:
  duration: 10s
  events:
    - at: 0s
      publish: {from: "slopes[*]", topic: readings, priority: 1, size: 100B, period: 5s}
    - at: 1s
      publish: {from: "slopes[2..4]", topic: alerts, priority: 4, size: 100B}
    - at: 2s
      publish: {from: "slopes[3]", topic: alerts, priority: 5, size: 100B}
    - at: 2s
      publish: {from: "slopes[1]", topic: unheard, priority: 5, size: 100B}
"""


@pytest.fixture
def hills(tmp_path: Path) -> Path:
    path = tmp_path / "hills.yaml"
    path.write_text(TEXT.replace("METHOD", "sg-tbps"))
    return path


def simulated(
    topology: Topology, asked: Selection | None = None, method: str | None = None
) -> SimulatedOverlay:
    overlay = topology.overlay
    chosen = choose_publication(topology, asked or Selection())
    return simulate(
        broker_scenario(topology, chosen, method or overlay.method, dict(overlay.parameters))
    )


def run(*arguments: str) -> str:
    shown = CliRunner().invoke(app, ["graph", *arguments], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.stdout


@pytest.mark.parametrize("method", ["sg-tbps", "scribe"])
def test_vectors_and_neighbours_are_those_of_a_simulated_run(method: str, tmp_path: Path) -> None:
    path = tmp_path / "hills.yaml"
    path.write_text(TEXT.replace("METHOD", method))
    topology = load(path)
    drawn = simulated(topology)
    lab = SimulatedLab(topology, RunPlace(tmp_path), service_ns=SECOND // 1000)
    for node in lab.nodes.values():
        node.go()
    lab.play(compile_timeline(topology), 1_000 * SECOND)  # sensors announce their publications
    lab.loop.run(90 * SECOND)
    graphs = {
        broker.number: lab.nodes[broker.name].core.describe()["graph"]
        for broker in topology.of_kind(NodeKind.BROKER)
    }
    peers = {
        number: one
        for number, graph in graphs.items()
        for one in graph["peers"]
        if method == "scribe" or topic_of(bytes.fromhex(one["key"])) == "alerts"
    }
    assert sorted(peers, key=lambda number: peers[number]["key"]) == [
        peer.number for peer in drawn.peers
    ]
    numbers = {one["key"]: number for number, one in peers.items()}
    for peer in drawn.peers:
        assert graphs[peer.number]["vector"] == f"{peer.vector:016x}"
        right = [numbers.get(key) for _, key in peers[peer.number]["links"]]
        assert tuple(right[: len(peer.right)]) == peer.right
        assert not any(right[len(peer.right) :])


@pytest.mark.parametrize(
    ("asked", "sensor", "topic", "priority"),
    [
        (Selection(), "slopes-3", "alerts", 5),
        (Selection(topic="readings"), "slopes-0", "readings", 1),
        (Selection(sensor="slopes-4"), "slopes-4", "alerts", 4),
        (Selection(priority=4), "slopes-2", "alerts", 4),
        (Selection(priority=2), "slopes-3", "alerts", 2),
        (Selection(topic="alerts", sensor="slopes-0"), "slopes-0", "alerts", 5),
    ],
    ids=["most urgent", "topic", "sensor", "priority", "another priority", "not in the scenario"],
)
def test_by_default_the_most_urgent_subscribed_publication_is_chosen(
    asked: Selection, sensor: str, topic: str, priority: int, hills: Path
) -> None:
    found = choose_publication(load(hills), asked)
    assert (found.sensor.name, found.topic, found.priority) == (sensor, topic, priority)


@pytest.mark.parametrize("method", ["sg-tbps", "fan-tbps", "atm-tbps", "scribe"])
def test_every_broker_with_subscribers_gets_the_publication(method: str, hills: Path) -> None:
    topology = load(hills)
    drawn = simulated(topology, method=method)
    brokers = {
        topology.node(node.brokers[0]).number
        for node in topology.of_kind(NodeKind.SUBSCRIBER)
        if "alerts" in node.topics
    }
    assert set(drawn.reached) == drawn.scenario.subscribers == brokers
    assert (
        drawn.scenario.publication.publisher
        == topology.node(topology.node("slopes-3").brokers[0]).number
    )
    shown = {peer.number for peer in drawn.peers}
    assert {end for hop in drawn.hops for end in (hop.src, hop.dst)} <= shown
    assert len(shown) == 6 or method != "scribe"  # all brokers are in Scribe's graph


def test_people_and_programs_see_the_same(hills: Path, tmp_path: Path) -> None:
    document = json.loads(run(str(hills), "--json", "-o", str(tmp_path / "a.svg")))
    shown = run(str(hills))
    assert {"overlay": "sg-tbps", "topic": "alerts", "priority": 5}.items() <= document.items()
    assert {node["role"] for node in document["nodes"]} <= {"publisher", "subscriber", "both"}
    assert f"priority 5: {len(document['messages'])} message" in shown
    assert all(node["name"] in shown for node in document["nodes"])
    assert (tmp_path / "a.svg").read_text() == svg(simulated(load(hills)))


def test_the_drawing_equals_the_golden_file(hills: Path) -> None:
    drawn = svg(simulated(load(hills)))
    golden = GOLDEN / "hills.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(drawn)
    assert drawn == golden.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--topic", "alarms"), "no node in hills subscribes to 'alarms'"),
        (("--topic", "unheard"), "no node in hills subscribes to 'unheard'"),
        (("--from", "slopes-9"), "hills has no node 'slopes-9'"),
        (("--from", "office"), "office is a subscriber; only sensors publish"),
        (("--overlay", "sg-tps"), "there is no overlay method 'sg-tps'"),
        (("--set", "multicast=shout"), "multicast 'shout'; there are"),
        (("--seed", "3"), "--seed is for overlays that are made up"),
        (("--plain", "--topic", "alerts"), "--topic belongs to an overlay, and --plain draws none"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(
    arguments: tuple[str, ...], message: str, hills: Path
) -> None:
    shown = CliRunner().invoke(app, ["graph", str(hills), *arguments])
    assert shown.exit_code == 2
    assert message in " ".join(shown.output.split())
    assert "→" in shown.output


def test_a_topology_without_sensors_has_no_publication(tmp_path: Path) -> None:
    path = tmp_path / "quiet.yaml"
    path.write_text(
        "name: quiet\ngroups:\n  huts: {kind: broker, count: 2}\noverlay: {method: sg-tbps}\n"
    )
    shown = CliRunner().invoke(app, ["graph", str(path)])
    assert shown.exit_code == 2
    assert "quiet has no sensor" in shown.output


def test_the_documentation_shows_the_landslide_in_kochi(repository: Path) -> None:
    topology = load(repository / "topologies" / "kochi-landslide.yaml")
    drawn = repository / "docs" / "images" / "overlay-kochi.svg"
    assert drawn.read_text() == svg(simulated(topology)), (
        "testbed graph topologies/kochi-landslide.yaml"
    )
