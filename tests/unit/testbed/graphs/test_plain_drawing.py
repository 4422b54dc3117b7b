"""A topology drawn plainly: every node is in it, on the link that the file gives it."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.graphs.topology_tree import CORE, TreeEntry, document, plain_svg, tree_entries
from testbed.topology import load, load_text

FILES = ("minimal", "demo", "valleys-300", "mosquitto", "kochi-landslide")


def run(*arguments: str, code: int = 0) -> str:
    shown = CliRunner().invoke(app, ["graph", *arguments], env={"COLUMNS": "200"})
    assert shown.exit_code == code, shown.output
    return shown.output


def size(hanging: Iterable[TreeEntry]) -> int:
    return sum(entry.count * (1 + size(entry.behind)) for entry in hanging)


@pytest.mark.parametrize("name", FILES)
def test_tree_entries_cover_all_nodes(name: str, repository: Path) -> None:
    topology = load(repository / "topologies" / f"{name}.yaml")
    assert size(tree_entries(topology)) == len(topology.nodes)
    ET.fromstring(plain_svg(topology))


def test_routers_behind_routers_are_drawn_behind_them() -> None:
    topology = load_text(
        "groups:\n"
        "  villages: {kind: router, count: 2, router: valley}\n"
        "  slopes: {kind: sensor, count: 4, router: 'villages[*]'}\n"
        "nodes: {hub: {kind: broker}, valley: {kind: router}}\n",
        "x",
    )
    valley = next(entry for entry in tree_entries(topology) if entry.kind == "router")
    (villages,) = valley.behind
    assert (villages.named, [entry.named for entry in villages.behind]) == (
        "villages × 2",
        ["slopes × 2"],
    )
    links = {link["node"]: link["to"] for link in document(topology)["links"]}
    assert (links["slopes-1"], links["villages-1"], links["valley"]) == (
        "villages-1",
        "valley",
        "core",
    )
    assert plain_svg(topology).count('class="node router"') == 2


def test_nodes_behind_routers_are_drawn_behind_them(repository: Path) -> None:
    found = {
        one.label: one for one in tree_entries(load(repository / "topologies" / "valleys-300.yaml"))
    }
    routers = found["villages"]
    assert (routers.count, routers.profile) == (10, "3g-384k")
    [behind] = routers.behind
    assert (behind.named, behind.about, behind.profile) == ("shared × 6", "sensor", "wifi")


def test_only_equal_nodes_share_a_tree_entry(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(
        "name: lab\n"
        "groups:\n"
        "  routers: {kind: router, count: 3}\n"
        "  slopes: {kind: sensor, count: 4, router: 'routers[0..1]'}\n"
        "nodes:\n"
        "  broker: {kind: broker}\n"
        "  siren: {kind: subscriber, topics: [a, b, c, d, e]}\n"
    )
    entries = [
        (one.named, one.about, [each.named for each in one.behind])
        for one in tree_entries(load(path))
    ]
    assert entries == [
        ("routers × 2", "router", ["slopes × 2"]),
        ("routers-2", "router", []),
        ("broker", "broker", []),
        ("siren", "subscriber: a, b, c, 2 more", []),
    ]


def test_people_and_programs_see_every_link(repository: Path) -> None:
    file = str(repository / "topologies" / "demo.yaml")
    document = json.loads(run(file, "--json"))
    assert {link["to"] for link in document["links"]} == {CORE}
    assert [node["name"] for node in document["nodes"]] == [
        link["node"] for link in document["links"]
    ]
    shown = run(file)
    assert "sensors × 6 (sensor) on mvno-128k" in shown
    for name, description in document["profiles"].items():
        assert name in shown
        assert description in shown


def test_an_overlay_is_drawn_plainly_if_asked_for(repository: Path) -> None:
    shown = run(str(repository / "topologies" / "kochi-landslide.yaml"), "--plain")
    assert "halls × 34 (broker) on hspa-7.2m" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--overlay", "sg-tbps"), "demo has fewer than two brokers, and an overlay sg-tbps"),
        (("--topic", "alerts"), "--topic belongs to an overlay, and demo has none"),
        (("--priority", "3"), "--priority belongs to an overlay, and demo has none"),
        (("-o", "/nowhere/a.svg"), "/nowhere/a.svg cannot be written"),
    ],
)
def test_senseless_options_are_refused_with_a_hint(
    arguments: tuple[str, ...], message: str, repository: Path
) -> None:
    shown = run(str(repository / "topologies" / "demo.yaml"), *arguments, code=2)
    assert message in " ".join(shown.split())
    assert "→" in shown


def test_the_documentation_shows_the_demo(repository: Path) -> None:
    drawn = repository / "docs" / "images" / "topology-demo.svg"
    expected = plain_svg(load(repository / "topologies" / "demo.yaml"))
    assert drawn.read_text() == expected, "testbed graph topologies/demo.yaml"
