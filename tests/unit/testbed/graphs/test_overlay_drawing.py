"""Drawings of example overlays show what the nodes' own code does."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodes.overlay.methods import TOPIC_METHODS
from testbed.cli.app import app
from testbed.graphs.overlay_svg import lists, svg
from testbed.graphs.scenario import Example
from testbed.graphs.simulate import SimulatedOverlay, simulate


def run(*arguments: str) -> str:
    shown = CliRunner().invoke(app, ["graph", *arguments], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    return shown.stdout


@pytest.fixture(scope="module", params=TOPIC_METHODS)
def simulated(request: pytest.FixtureRequest) -> SimulatedOverlay:
    return simulate(Example(request.param).scenario())


def test_every_subscriber_is_reached_by_the_shortest_drawn_path(
    simulated: SimulatedOverlay,
) -> None:
    assert set(simulated.reached) == simulated.scenario.subscribers == set(range(4, 11))
    for number, hops in simulated.reached.items():
        came = [hop.number for hop in simulated.hops if hop.dst == number]
        # On a map, a publication may pass through a node before it is matched.
        assert hops in came if simulated.areas else hops == min(came)


def test_lists_are_in_key_order_and_their_members_share_the_labelled_bits(
    simulated: SimulatedOverlay,
) -> None:
    assert [len(lists(simulated.peers, 0)), len(lists(simulated.peers, 0)[0][1])] == [1, 10]
    order = [peer.number for peer in simulated.peers]
    assert simulated.areas or order == sorted(order)
    for level in range(simulated.levels):
        for bits, members in lists(simulated.peers, level):
            assert len(bits) == level
            assert all(peer.bits(level) == bits for peer in members)
            places = [order.index(peer.number) for peer in members]
            assert places == sorted(places)


def test_the_drawing_has_an_arc_for_each_message(simulated: SimulatedOverlay) -> None:
    drawing = ET.fromstring(svg(simulated))
    arcs = [one for one in drawing.iter() if "hop" in one.get("class", "").split()]
    assert len(arcs) == len(simulated.hops)


def test_the_same_example_is_drawn_alike_each_time() -> None:
    scenario = Example("sg-tbps", seed=7).scenario()
    assert svg(simulate(scenario)) == svg(simulate(scenario))


def test_programs_get_the_same_as_people(tmp_path: Path) -> None:
    document = json.loads(run("--overlay", "sg-tbps", "--json", "-o", str(tmp_path / "a.svg")))
    shown = run("--overlay", "sg-tbps")
    assert f"{len(document['messages'])} messages, 7 of 7 subscribers" in shown
    assert (tmp_path / "a.svg").read_text() == svg(simulate(Example("sg-tbps").scenario()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to draw"),
        (("--overlay", "rings"), "there is no overlay method 'rings'"),
        (("--overlay", "sg-tbps", "--topic", "alerts"), "--topic is for the brokers of"),
        (("--overlay", "sg-tbps", "--plain"), "--plain is for the brokers of"),
        (("--overlay", "sg-tbps", "--set", "flood"), "--set 'flood' is not NAME=VALUE"),
        (("--overlay", "sg-tbps", "--set", "multicast=shout"), "multicast 'shout'; there are"),
        (("--overlay", "sg-tbps", "--subscribers", "500"), "503 nodes cannot be drawn"),
        (("--overlay", "sg-tbps", "-o", "/nowhere/a.svg"), "/nowhere/a.svg cannot be written"),
    ],
)
def test_overlays_that_cannot_be_drawn_are_refused_with_a_hint(
    arguments: tuple[str, ...], message: str
) -> None:
    shown = CliRunner().invoke(app, ["graph", *arguments])
    assert shown.exit_code == 2
    assert message in shown.output
    assert "→" in shown.output


@pytest.mark.parametrize(
    "example",
    [
        Example("sg-tbps"),
        Example("psg-tbps"),
        Example("atm-tbps", parameters={"table_size": 5}),
        Example("patm-tbps", parameters={"table_size": 5, "beyond": "psg"}),
        Example("fan-tbps"),
        Example("scribe"),
        Example("collection", publishers=9, subscribers=1, priority=1, seed=5),
    ],
    ids=lambda example: example.method,
)
def test_the_documentation_shows_what_the_code_does_now(example: Example, repository: Path) -> None:
    drawn = repository / "docs" / "images" / f"overlay-{example.method}.svg"
    assert drawn.read_text() == svg(simulate(example.scenario())), f"testbed graph for {example}"
