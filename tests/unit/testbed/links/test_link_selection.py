"""The links that a selector selects, and the error if it selects none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.lab.links import select_links
from testbed.topology import load_text

FILE = """
nodes: {hub: {kind: broker}, gauge: {kind: sensor}, siren: {kind: subscriber, topics: [t]}}
groups: {sensors: {kind: sensor, count: 6}, towns: {kind: subscriber, count: 1, topics: [t]}}
scenario: {duration: 1s, events: [{at: 0s, publish: {from: gauge, topic: t, size: 1B}}]}
"""
LAB = load_text(FILE, "lab.yaml")
NAMES = tuple(node.name for node in LAB.nodes)
single = st.sampled_from(NAMES)


def test_a_group_a_stretch_and_a_node_mean_their_links_once_and_in_file_order():
    meant = select_links(["sensors[1..3]", "hub", "sensors[3]", "sensors-2"], LAB)
    assert meant == tuple(n for n in NAMES if n in {"hub", "sensors-1", "sensors-2", "sensors-3"})
    assert len(select_links(["sensors[*]"], LAB)) == 6


def test_all_means_every_link_unless_a_node_is_called_so():
    assert select_links(["all"], LAB) == NAMES
    called_all = load_text(FILE.replace("gauge", "all"), "lab.yaml")
    assert select_links(["all"], called_all) == ("all",)


@given(st.lists(single, max_size=12))
def test_names_select_exactly_themselves(names):
    assert select_links(names, LAB) == tuple(n for n in NAMES if n in names)


@given(st.lists(single), st.lists(st.sampled_from(["sensors[*]", "all", "towns[0]"])))
def test_more_selectors_never_mean_fewer_links(names, more):
    assert set(select_links(names, LAB)) <= set(select_links([*names, *more], LAB))


@pytest.mark.parametrize(
    ("selector", "message", "hint"),
    [
        ("gage", "there is no node 'gage'", "did you mean 'gauge'?"),
        ("sensors", "'sensors' is a group", r"for all its nodes write sensors\[\*\]"),
        ("sensor[*]", "there is no group 'sensor'", "did you mean 'sensors'?"),
        ("sensors[6]", "group 'sensors' has no member 6", r"sensors\[0..5\]"),
        ("sensors[3..1]", "the range is reversed", r"write sensors\[1..3\]"),
        ("sensors[", "is not a selector", "write a node's name"),
        ("hub[*]", "there is no group 'hub'", "hub is a single node"),
        ("", "there is no node ''", "known here"),
    ],
)
def test_a_selector_that_means_nothing_is_refused_with_what_could_be_meant(selector, message, hint):
    with pytest.raises(InputError) as refused:
        select_links(["hub", selector], LAB)
    assert message in refused.value.message
    assert hint.replace("\\", "") in refused.value.hint
