"""Limits of a scenario's actions: excessive and meaningless values are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.topology import TopologyErrors, load_text
from testbed.topology.model import Topology

LAB = """\
groups:
  s: {kind: sensor, count: 3, tags: [up]}
nodes:
  hub: {kind: broker, tags: [core]}
  siren: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 10000s
  events:
"""


def topology(event: str) -> Topology:
    return load_text(f"{LAB}    - {event}\n", "x.yaml")


def refused(event: str) -> str:
    with pytest.raises(TopologyErrors) as caught:
        topology(event)
    (problem,) = caught.value.problems
    return problem.message


def test_late_messages_are_looked_for_during_some_time():
    assert "the window must be longer than zero" in refused(
        "{when: {delay: {above: 2s, over: 0s}}, mark: slow}"
    )
    topology("{when: {delay: {above: 2s, over: 1s}}, mark: slow}")


@pytest.mark.parametrize(
    ("to", "name"), [("siren", "siren"), ('"s[0]"', "s-0"), ('"tag:core"', "hub")]
)
def test_traffic_goes_to_the_one_node_that_is_meant(to, name):
    (load,) = topology(
        f"{{at: 1s, load: {{nodes: s-2, to: {to}, rate: 1kbit/s}}}}"
    ).scenario.actions
    assert dict(load.details)["to"] == name


@pytest.mark.parametrize("to", ["s[*]", "s[0..1]", "tag:up"])
def test_traffic_does_not_go_to_several_nodes(to):
    message = refused(f'{{at: 1s, load: {{nodes: siren, to: "{to}", rate: 1kbit/s}}}}')
    assert message.endswith("nodes, and one is needed")


@pytest.mark.parametrize("to", ["s-1", "s[1]"])
def test_no_node_sends_to_itself_whatever_selects_it(to):
    message = refused(f'{{at: 1s, load: {{nodes: "s[*]", to: "{to}", rate: 1kbit/s}}}}')
    assert message == "s-1 would send to itself"


def test_no_node_is_asked_for_more_datagrams_than_can_be_sent():
    load = "{{at: 1s, load: {{nodes: siren, to: hub, size: 58B, rate: {}}}}}"
    topology(load.format("80Mbit/s"))  # 100 bytes each with their headers
    assert "100,001 datagrams a second" in refused(load.format("80000800bit/s"))


@given(st.integers(1, 4_000), st.integers(1, 4_000), st.integers(1, 9_000))
def test_links_flap_at_most_ten_thousand_times(down_ms, up_ms, for_s):
    event = f"{{at: 1s, for: {for_s}s, flap: {{nodes: siren, down: {down_ms}ms, up: {up_ms}ms}}}}"
    if for_s * 1_000 > 10_000 * (down_ms + up_ms):
        assert "at most 10,000 are possible" in refused(event)
    else:
        topology(event)


@pytest.mark.parametrize(
    ("rates", "fine"),
    [
        ("leave: 1/s", True),
        ("leave: 1/s, join: 1/s", False),
        ("leave: 2/s", False),
        ("leave: 30/min, join: 30/min", True),
    ],
)
def test_nodes_come_and_go_at_most_ten_thousand_times_on_average(rates, fine):
    event = f'{{at: 0s, churn: {{nodes: "s[*]", {rates}}}}}'
    if fine:
        topology(event)
    else:
        assert refused(event) == "it would happen 20,000 times; at most 10,000 are possible"


HAZARD = """\
nodes:
  hub: {{kind: broker}}
  gauge: {{kind: sensor}}
  siren: {{kind: subscriber, topics: [alerts]}}
scenario:
  duration: 1h
  hazard:
    kind: {}
    nodes: gauge
    readings: {{topic: readings}}
    alerts: {{topic: alerts}}
    rain: {{series: [10], before: {}, before_for: {}}}
"""


@pytest.mark.parametrize(
    ("kind", "before_for"), [("landslide", "400000h"), ("flood", "40000h"), ("flood", "100000000h")]
)
def test_the_steps_of_earlier_rain_are_limited_too(kind, before_for):
    with pytest.raises(TopologyErrors) as caught:
        load_text(HAZARD.format(kind, "200mm", before_for), "x.yaml")
    (problem,) = caught.value.problems
    assert "more than 2,000,000 steps" in problem.message
    assert "`before_for`" in problem.hint
    load_text(HAZARD.format(kind, "0mm", before_for), "x.yaml")  # nothing to compute
    load_text(HAZARD.format(kind, "200mm", "72h"), "x.yaml")
