"""The labs of Lee 2016 are complete, paired, and the same at every speed."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from nodes.protocol.wire import HEADER_SIZE
from testbed.papers.lee2016 import FULL, QUICK, Lab, sheet, topology_text
from testbed.papers.lee2016 import model as ways
from testbed.papers.lee2016.cells import Experiment
from testbed.scenario import compile_timeline
from testbed.topology import find_likely_mistakes, load_text
from testbed.topology.model import Emulator, Topology

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "papers" / "lee2016-quick.yaml"
LABS = [*FULL.labs, *QUICK.labs]


def loaded(lab: Lab) -> Topology:
    return load_text(topology_text(lab), f"{lab.name}.yaml")


def test_the_quick_reproduction_equals_the_golden_plan() -> None:
    """Without our own method: the length of its pieces is not fixed by the thesis."""
    quick = QUICK.labs[0]
    cells = tuple(cell for cell in quick.cells if cell.series in ways.THESIS)
    text = topology_text(replace(quick, cells=cells))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_every_lab_is_a_valid_file_without_likely_mistakes(lab: Lab) -> None:
    topology = loaded(lab)
    assert not find_likely_mistakes(topology)
    clients = {node.name: node for node in topology.nodes if node.name in sheet(lab)["cells"]}
    assert len(clients) == len(lab.cells) == len(topology.nodes) - 2
    for cell in lab.cells:
        down = topology.profile(clients[cell.node].profile).down
        assert down.rate_bps == cell.rate_kbps * 8_000 * lab.scale
        assert topology.profile(clients[cell.node].profile).up.rate_bps is None


def test_the_full_reproduction_has_every_rate_and_method_for_both_experiments() -> None:
    main = FULL.labs[0]
    assert main.scale == 1
    assert main.rates == tuple(range(4, 21))
    for experiment in Experiment:
        found = {(c.series.key, c.rate_kbps) for c in main.cells if c.experiment is experiment}
        assert found == {(way.key, rate) for way in ways.ALL for rate in main.rates}


def test_a_hundred_urgent_messages_come_in_a_thousand_seconds() -> None:
    counts = Counter(action.topic for action in compile_timeline(loaded(FULL.labs[0])))
    for way in ways.ALL:
        assert counts[f"delay/{way.key}/pm"] == counts[f"delay/{way.key}/sm"] == 100
        assert counts[f"traffic/{way.key}/pm"] == counts[f"traffic/{way.key}/sm"] == 10
    assert counts.total() == len(ways.ALL) * 220


def test_messages_have_the_thesis_sizes_with_header_and_topic() -> None:
    for action in compile_timeline(loaded(QUICK.labs[0])):
        size = HEADER_SIZE + len(action.topic) + action.size
        assert size == (1_000 if action.topic.endswith("/pm") else 100_000)
        assert action.priority == (5 if action.topic.endswith("/pm") else 1)


def moments(lab: Lab, way: ways.Series) -> list[tuple[str, int]]:
    """Kind and time of the delay experiment's messages, from its first SM on, in the thesis' time."""
    own = [a for a in compile_timeline(loaded(lab)) if a.topic.startswith(f"delay/{way.key}/")]
    return [(a.topic[-2:], (a.at_ns - own[0].at_ns) * lab.scale) for a in own]


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_every_way_of_sending_gets_the_same_messages_at_every_scale(lab: Lab) -> None:
    whole = moments(FULL.labs[0], ways.DEFAULT)
    expected = [moment for moment in whole if moment[1] < lab.seconds * 10**9]
    for way in {cell.series for cell in lab.cells}:
        assert moments(lab, way) == expected


def test_the_bucket_is_a_fifth_of_the_rate_but_holds_a_frame() -> None:
    bursts = {p.name: p.down.burst_bytes for p in loaded(FULL.labs[0]).profiles}
    assert bursts["line-4"] == bursts["line-8"] == 1_600
    assert bursts["line-20"] == 4_000
    relay = FULL.labs[1]
    assert relay.emulator is Emulator.RELAY
    assert {p.down.burst_bytes for p in loaded(relay).profiles} == {None}


def test_queues_hold_all_messages_of_an_experiment() -> None:
    timeline = compile_timeline(loaded(FULL.labs[0]))
    for way in ways.ALL:
        own = [action for action in timeline if action.topic.startswith(f"delay/{way.key}/")]
        assert way.delivery(1)["limit_bytes"] > sum(action.size + 100 for action in own)


def test_the_pieces_of_our_method_are_scaled_like_everything_else() -> None:
    assert ways.PREEMPTIVE.delivery(10)["piece_s"] * 10 == pytest.approx(
        ways.PREEMPTIVE.delivery(1)["piece_s"]
    )
