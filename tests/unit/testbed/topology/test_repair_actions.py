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
    - {{at: 5s, {fault}: {{nodes: siren}}}}
    - {{{when}, {repair}: {{nodes: {nodes}}}}}
"""
PAIRS = [("cut", "restore"), ("crash", "start")]
WAITING = "when: {received: {}}"


@pytest.mark.parametrize(("fault", "repair"), PAIRS)
@pytest.mark.parametrize("when", [WAITING, "when: {received: {}, after: 1s}", "at: 6s"])
def test_a_repair_after_its_fault_is_accepted(fault, repair, when):
    topology = load_text(LAB.format(fault=fault, repair=repair, when=when, nodes="siren"), "a.yaml")
    assert {each.kind.value for each in topology.scenario.actions} == {fault, repair}


@pytest.mark.parametrize(("fault", "repair"), PAIRS)
@pytest.mark.parametrize(
    ("when", "nodes", "message"),
    [("at: 4s", "siren", "before 4s"), (WAITING, "gauge", "in this scenario")],
)
def test_a_repair_without_an_earlier_fault_is_refused(fault, repair, when, nodes, message):
    with pytest.raises(TopologyErrors, match=message):
        load_text(LAB.format(fault=fault, repair=repair, when=when, nodes=nodes), "a.yaml")
