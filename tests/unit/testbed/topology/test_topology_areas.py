"""Areas in topology files: subscribers get the publications of the area in degrees."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.scenario import compile_timeline, expected_deliveries
from testbed.topology import find_likely_mistakes, load_text
from testbed.topology.model import from_json, to_json

FILE = """
space: {{tilt: [0, 45]{bounds}}}
nodes:
  hub: {{kind: broker}}
  gauge: {{kind: sensor, at: {at}}}
  siren: {{kind: subscriber, subscribe: {{within: {within}, min_priority: {level}, where: {{tilt: {tilts}}}}}}}
  office: {{kind: subscriber, topics: [alerts]}}
scenario:
  duration: 5s
  events:
    - at: 0s
      publish: {{from: gauge, topic: alerts, priority: 3, size: 10B, values: {{tilt: {tilt}}}}}
"""

degrees = st.integers(-900, 900).map(lambda tenths: tenths / 10)
places = st.tuples(degrees, degrees).map(list)
tilts = st.integers(0, 450).map(lambda tenths: tenths / 10)


@given(
    places,
    st.tuples(places, places).map(list),
    st.integers(1, 5),
    st.tuples(tilts, tilts).map(sorted),
    tilts,
    st.sampled_from(["", ", latitude: [-90, 90]", ", longitude: [-180, 180.5]"]),
)
@settings(deadline=None, max_examples=60)
def test_a_subscriber_expects_what_lies_in_its_area_as_it_is_written(
    at: list[float],
    within: list[list[float]],
    level: int,
    range_: list[float],
    tilt: float,
    bounds: str,
) -> None:
    text = FILE.format(at=at, within=within, level=level, tilts=range_, tilt=tilt, bounds=bounds)
    topology = load_text(text, "valley")
    assert from_json(json.loads(json.dumps(to_json(topology)))) == topology
    inside = all(min(a, b) <= x <= max(a, b) for a, b, x in zip(*within, at, strict=True))
    wanted = inside and level <= 3 and range_[0] <= tilt <= range_[1]
    expected = expected_deliveries(topology, compile_timeline(topology))
    assert expected == ({"siren": 1, "office": 1} if wanted else {"office": 1})
    in_vain = [sentence for sentence in find_likely_mistakes(topology) if "siren" in sentence]
    assert bool(in_vain) is not wanted


def test_a_lab_without_areas_has_no_places() -> None:
    plain = load_text(
        """
nodes:
  hub: {kind: broker}
  gauge: {kind: sensor, at: [33.5, 133.5]}
  office: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 5s
  events:
    - {at: 0s, publish: {from: gauge, topic: alerts, size: 10B}}
""",
        "plain",
    )
    assert plain.space == ()
    assert {action.place for action in compile_timeline(plain)} == {()}


def test_the_form_of_the_issue_works_and_levels_need_no_place() -> None:
    topology = load_text(
        """
nodes:
  hub: {kind: broker}
  gauge: {kind: sensor}
  siren: {kind: subscriber, subscribe: {min_priority: 4}}
scenario:
  duration: 5s
  events:
    - {at: 0s, publish: {from: gauge, topic: alerts, priority: 4, size: 10B}}
    - {at: 0s, publish: {from: gauge, topic: alerts, priority: 3, size: 10B}}
""",
        "levels",
    )
    assert topology.space == ()
    assert topology.node("siren").topics == ("{4}alerts",)
    assert expected_deliveries(topology, compile_timeline(topology)) == {"siren": 1}
