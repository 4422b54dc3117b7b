"""Selectors: overlapping ones select each node once, in any notation."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.topology import load_text
from testbed.topology.parse.selectors import MemberRange, Members, merged, select

stretches = st.builds(
    lambda group, first, length: MemberRange(group, range(first, first + length)),
    st.sampled_from("ab"),
    st.integers(0, 30),
    st.integers(1, 10),
)


def members(some: list[MemberRange]) -> list[tuple[str, int]]:
    return [(stretch.group, index) for stretch in some for index in stretch.indices]


@given(st.lists(stretches, max_size=20))
def test_merged_stretches_hold_the_same_members_once_and_in_order(some: list[MemberRange]) -> None:
    assert members(merged(some)) == sorted(set(members(some)))


@given(st.lists(stretches, max_size=20))
def test_as_few_stretches_as_possible_are_left(some: list[MemberRange]) -> None:
    left = merged(some)
    assert merged(left) == left
    ends = {(stretch.group, stretch.indices.stop) for stretch in left}
    assert not ends & {(stretch.group, stretch.indices.start) for stretch in left}


def test_members_of_a_group_with_an_unknown_count_are_unknown() -> None:
    assert select("g[7]", Members(frozenset({"g-0"}), {"g": None})) is None


def test_a_node_that_is_meant_twice_publishes_once_and_in_file_order() -> None:
    text = """
nodes: {hub: {kind: broker}, gauge: {kind: sensor}}
groups: {s: {kind: sensor, count: 6}}
scenario:
  duration: 1s
  events: [{at: 0s, publish: {from: ["s[3..4]", s-1, "s[1..3]", gauge, "s[5]", gauge], topic: t, size: 1B}}]
"""
    (event,) = load_text(text, "x").scenario.publish
    assert event.nodes == ("gauge", "s-1", "s-2", "s-3", "s-4", "s-5")
