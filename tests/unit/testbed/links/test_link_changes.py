"""The effects of set, cut, restore and reset on links, and the orders that they refuse."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.links.changes import (
    BOTH,
    DOWN,
    UP,
    Action,
    DirectionState,
    LinkOrder,
    LinkState,
    apply_order,
    configured_links,
    describe_differences,
    find_differences,
    still_changed,
)
from testbed.topology.model import Emulator, Node, NodeKind, Profile, Shape, Topology
from testbed.topology.profiles import PROFILES

delays = st.floats(0, 2, allow_nan=False)
shapes = st.builds(
    lambda rate, delay, share, loss, queue: Shape(rate, delay, delay * share, loss, queue),
    st.none() | st.floats(1e3, 1e9),
    delays,
    st.floats(0, 1),
    st.floats(0, 1),
    st.none() | st.integers(0, 10**6),
)
states = st.builds(DirectionState, shapes, st.booleans())
links = st.builds(LinkState, states, states)
directions = st.sampled_from([BOTH, (UP,), (DOWN,)])
values = st.fixed_dictionaries(
    {},
    optional={
        "rate_bps": st.none() | st.floats(1e3, 1e9),
        "loss": st.floats(0, 1),
        "queue_bytes": st.none() | st.integers(0, 10**6),
    },
)
orders = st.builds(
    LinkOrder,
    st.sampled_from(Action),
    directions,
    st.none() | st.sampled_from(list(PROFILES.values())),
    values,
)


def make(order: LinkOrder, link: LinkState, configured: LinkState | None = None) -> LinkState:
    """The link after the order, by the relay."""
    configured = configured or link
    return apply_order(order, {"a": link}, {"a": configured}, Emulator.RELAY).get("a", link)


@given(orders, links, links)
def test_a_direction_that_is_not_meant_stays_as_it_is(order, link, configured):
    after = make(order, link, configured)
    for direction in set(BOTH) - set(order.directions):
        assert after.direction_state(direction) == link.direction_state(direction)


@given(orders, links, links)
def test_the_same_order_twice_changes_nothing_the_second_time(order, link, configured):
    once = make(order, link, configured)
    assert apply_order(order, {"a": once}, {"a": configured}, Emulator.RELAY) == {}


@given(links, directions, values)
def test_values_that_set_does_not_name_stay(link, meant, values):
    after = make(LinkOrder(Action.SET, meant, values=values), link)
    for direction in meant:
        assert after.direction_state(direction) == replace(
            link.direction_state(direction),
            shape=replace(link.direction_state(direction).shape, **values),
        )


@given(links, directions, values, st.sampled_from(list(PROFILES.values())))
def test_single_values_go_before_the_profiles(link, meant, values, profile):
    after = make(LinkOrder(Action.SET, meant, profile, values), link)
    for direction in meant:
        wanted = replace(LinkState.of(profile).direction_state(direction).shape, **values)
        assert after.direction_state(direction) == DirectionState(
            wanted, link.direction_state(direction).cut
        )


@given(links, directions)
def test_a_cut_keeps_the_shape_and_restore_ends_only_the_cut(link, meant):
    cut = make(LinkOrder(Action.CUT, meant), link)
    assert [cut.direction_state(d).cut for d in meant] == [True] * len(meant)
    assert (cut.up.shape, cut.down.shape) == (link.up.shape, link.down.shape)
    restored = make(LinkOrder(Action.RESTORE, meant), cut)
    assert [restored.direction_state(d).cut for d in meant] == [False] * len(meant)
    assert (restored.up.shape, restored.down.shape) == (link.up.shape, link.down.shape)


@given(st.lists(orders, max_size=6), links, shapes, shapes)
def test_reset_undoes_whatever_was_ordered_before(history, link, up, down):
    configured = LinkState(DirectionState(up), DirectionState(down))
    for order in history:
        link = make(order, link, configured)
    assert make(LinkOrder(Action.RESET), link, configured) == configured


@given(states)
def test_a_direction_state_survives_the_trip_to_the_keeper(direction_state):
    assert DirectionState.from_json(direction_state.to_json()) == direction_state


@given(st.dictionaries(st.sampled_from("abcd"), links), orders)
def test_only_links_that_change_are_returned(now, order):
    for name, link in apply_order(order, now, now, Emulator.RELAY).items():
        assert link != now[name]


CALM = LinkState(DirectionState(Shape(delay_s=0.1)), DirectionState(Shape(delay_s=0.1)))
NERVOUS = LinkState(DirectionState(Shape(delay_s=0.1, jitter_s=0.05)), DirectionState(Shape()))


@pytest.mark.parametrize(
    ("link", "order", "sentence"),
    [
        (
            CALM,
            LinkOrder(Action.SET, values={"jitter_s": 0.2}),
            "b up: a jitter of 200ms is larger than the delay of 100ms",
        ),
        (
            NERVOUS,
            LinkOrder(Action.SET, values={"delay_s": 0.01}),
            "b up: a jitter of 50ms is larger than the delay of 10ms",
        ),
        (
            NERVOUS,
            LinkOrder(Action.SET, (DOWN,), values={"jitter_s": 0.01}),
            "b down: a jitter of 10ms is larger than the delay of 0ns",
        ),
    ],
)
def test_a_jitter_larger_than_the_delay_is_refused_with_all_else(link, order, sentence):
    now = {
        "a": LinkState(DirectionState(Shape(delay_s=9.0)), DirectionState(Shape(delay_s=9.0))),
        "b": link,
    }
    with pytest.raises(InputError, match=sentence):
        apply_order(order, now, now, Emulator.RELAY)


@pytest.mark.parametrize(
    "values", [{"delay_s": 0.1}, {"loss": 0.01}, {"delay_s": 1.0, "loss": 0.5}]
)
def test_tbf_is_not_asked_for_more_than_rates(values):
    now = {"a": LinkState(DirectionState(Shape(1e6)), DirectionState(Shape(1e6)))}
    with pytest.raises(InputError, match="tbf only limits rates") as refused:
        apply_order(LinkOrder(Action.SET, values=values), now, now, Emulator.TBF)
    assert "only --rate and --queue" in refused.value.hint
    assert apply_order(LinkOrder(Action.SET, values=values), now, now, Emulator.NETEM)
    slower = apply_order(LinkOrder(Action.SET, values={"rate_bps": 5e5}), now, now, Emulator.TBF)
    assert slower["a"].up.shape.rate_bps == 5e5


def test_a_change_is_recorded_with_the_values_that_it_names():
    profile = Profile("p", up=Shape(1.0), down=Shape(2.0))
    assert LinkOrder(Action.SET, (UP,), values={"loss": 0.5}).shapes() == {"up": {"loss": 0.5}}
    shapes_set = LinkOrder(Action.SET, profile=profile, values={"queue_bytes": 7}).shapes()
    assert shapes_set["down"] == {
        "rate_bps": 2.0,
        "delay_s": 0.0,
        "jitter_s": 0.0,
        "loss": 0.0,
        "queue_bytes": 7,
        "burst_bytes": None,
    }
    assert LinkOrder(Action.CUT).shapes() == {"up": {}, "down": {}}


def test_links_that_differ_from_the_file_are_described_in_a_sentence():
    profile = Profile("p", up=Shape(1e6))
    nodes = tuple(Node(name, 1, NodeKind.SENSOR, "p") for name in "abc")
    configured = configured_links(Topology("t", 1, (profile,), nodes))
    cut = replace(configured["a"], up=replace(configured["a"].up, cut=True))
    slow = LinkState(DirectionState(Shape(5e5)), configured["b"].down)
    differences = find_differences(
        {"a": cut, "b": slow, "c": configured["c"], "unknown": slow}, configured
    )
    assert describe_differences(differences) == "2 links are not as the file says: a cut, b changed"
    assert describe_differences({"a": "cut"}) == "1 link is not as the file says: a cut"
    assert describe_differences({}) == ""


def entry(action: str, *names: str, directions: tuple[str, ...] = BOTH) -> dict:
    return {"action": action, "links": list(names), "directions": list(directions)}


def test_the_record_shows_which_links_may_still_be_changed():
    record = [
        entry("cut", "a", "b", directions=(UP,)),
        entry("set", "c"),
        entry("reset", "a", "c"),
        entry("reset", "b", directions=(DOWN,)),
        entry("restore", "b"),
        entry("set", "a"),
    ]
    assert still_changed(record) == ["b", "a"]
    assert still_changed([*record, entry("reset", "a", "b", "c")]) == []


@given(st.lists(st.tuples(orders, st.sampled_from("ab"))), links, links)
def test_no_link_that_differs_from_the_file_is_missing_in_the_record(history, one, other):
    configured = {"a": uncut(one), "b": uncut(other)}
    now, record = dict(configured), []
    for order, name in history:
        done = apply_order(order, {name: now[name]}, configured, Emulator.RELAY)
        now.update(done)
        if done:
            record.append(entry(order.action, *done, directions=order.directions))
    assert find_differences(now, configured).keys() <= set(still_changed(record))


def uncut(link: LinkState) -> LinkState:
    """No file says that a link is cut."""
    return LinkState(DirectionState(link.up.shape), DirectionState(link.down.shape))
