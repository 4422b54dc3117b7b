"""A repair needs a fault: before it, or anywhere in the file if it waits for a trigger."""

import pytest

from testbed.topology import TopologyErrors, load_text

LAB = """
nodes:
  broker: {{kind: broker}}
  gauge: {{kind: sensor}}
  siren: {{kind: subscriber, topics: [alerts]}}
scenario:
  duration: 20s
  events:
    - {{at: 1s, publish: {{from: gauge, topic: alerts, size: 1kB, period: 1s}}}}
    - {{at: 5s, {breaks}: {{nodes: siren}}}}
    - {{{when}, {mends}: {{nodes: {nodes}}}}}
"""
PAIRS = [("cut", "restore"), ("crash", "start")]
WAITING = "when: {received: {}}"


@pytest.mark.parametrize(("breaks", "mends"), PAIRS)
@pytest.mark.parametrize("when", [WAITING, "when: {received: {}, after: 1s}", "at: 6s"])
def test_what_is_broken_when_it_comes_can_be_mended(breaks, mends, when):
    topology = load_text(LAB.format(breaks=breaks, mends=mends, when=when, nodes="siren"), "a.yaml")
    assert {each.kind.value for each in topology.scenario.actions} == {breaks, mends}


@pytest.mark.parametrize(("breaks", "mends"), PAIRS)
@pytest.mark.parametrize(
    ("when", "nodes", "message"),
    [("at: 4s", "siren", "before 4s"), (WAITING, "gauge", "in this scenario")],
)
def test_what_never_breaks_before_it_cannot(breaks, mends, when, nodes, message):
    with pytest.raises(TopologyErrors, match=message):
        load_text(LAB.format(breaks=breaks, mends=mends, when=when, nodes=nodes), "a.yaml")
