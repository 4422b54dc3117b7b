"""What a scenario may ask for: no more than can be done, and nothing that means nothing."""

import pytest

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
    assert "no time at all" in refused("{when: {delay: {above: 2s, over: 0s}}, mark: slow}")
    topology("{when: {delay: {above: 2s, over: 1s}}, mark: slow}")
