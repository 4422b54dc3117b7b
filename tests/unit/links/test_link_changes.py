"""What set, cut, restore and reset make of links, and what they refuse."""

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
    Line,
    Link,
    Order,
    as_filed,
    differing,
    ordered,
    sentence_on,
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
lines = st.builds(Line, shapes, st.booleans())
links = st.builds(Link, lines, lines)
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
    Order,
    st.sampled_from(Action),
    directions,
    st.none() | st.sampled_from(list(PROFILES.values())),
    values,
)


def make(order: Order, link: Link, filed: Link | None = None) -> Link:
    """The link after the order, by the relay."""
    filed = filed or link
    return ordered(order, {"a": link}, {"a": filed}, Emulator.RELAY).get("a", link)


@given(orders, links, links)
def test_a_direction_that_is_not_meant_stays_as_it_is(order, link, filed):
    after = make(order, link, filed)
    for direction in set(BOTH) - set(order.directions):
        assert after.line(direction) == link.line(direction)


@given(orders, links, links)
def test_the_same_order_twice_changes_nothing_the_second_time(order, link, filed):
    once = make(order, link, filed)
    assert ordered(order, {"a": once}, {"a": filed}, Emulator.RELAY) == {}


@given(links, directions, values)
def test_what_set_does_not_speak_of_keeps_its_value(link, meant, said):
    after = make(Order(Action.SET, meant, values=said), link)
    for direction in meant:
        assert after.line(direction) == replace(
            link.line(direction), shape=replace(link.line(direction).shape, **said)
        )


@given(links, directions, values, st.sampled_from(list(PROFILES.values())))
def test_single_values_go_before_the_profiles(link, meant, said, profile):
    after = make(Order(Action.SET, meant, profile, said), link)
    for direction in meant:
        wanted = replace(Link.of(profile).line(direction).shape, **said)
        assert after.line(direction) == Line(wanted, link.line(direction).cut)


@given(links, directions)
def test_a_cut_keeps_the_shape_and_restore_ends_only_the_cut(link, meant):
    cut = make(Order(Action.CUT, meant), link)
    assert [cut.line(d).cut for d in meant] == [True] * len(meant)
    assert (cut.up.shape, cut.down.shape) == (link.up.shape, link.down.shape)
    restored = make(Order(Action.RESTORE, meant), cut)
    assert [restored.line(d).cut for d in meant] == [False] * len(meant)
    assert (restored.up.shape, restored.down.shape) == (link.up.shape, link.down.shape)


@given(st.lists(orders, max_size=6), links, shapes, shapes)
def test_reset_undoes_whatever_was_ordered_before(history, link, up, down):
    filed = Link(Line(up), Line(down))
    for order in history:
        link = make(order, link, filed)
    assert make(Order(Action.RESET), link, filed) == filed


@given(lines)
def test_a_line_survives_the_trip_to_the_keeper(line):
    assert Line.from_json(line.to_json()) == line


@given(st.dictionaries(st.sampled_from("abcd"), links), orders)
def test_only_links_that_change_are_told(now, order):
    for name, link in ordered(order, now, now, Emulator.RELAY).items():
        assert link != now[name]


CALM = Link(Line(Shape(delay_s=0.1)), Line(Shape(delay_s=0.1)))
NERVOUS = Link(Line(Shape(delay_s=0.1, jitter_s=0.05)), Line(Shape()))


@pytest.mark.parametrize(
    ("link", "order", "sentence"),
    [
        (
            CALM,
            Order(Action.SET, values={"jitter_s": 0.2}),
            "b up: a jitter of 200ms is larger than the delay of 100ms",
        ),
        (
            NERVOUS,
            Order(Action.SET, values={"delay_s": 0.01}),
            "b up: a jitter of 50ms is larger than the delay of 10ms",
        ),
        (
            NERVOUS,
            Order(Action.SET, (DOWN,), values={"jitter_s": 0.01}),
            "b down: a jitter of 10ms is larger than the delay of 0ns",
        ),
    ],
)
def test_a_jitter_larger_than_the_delay_is_refused_with_all_else(link, order, sentence):
    now = {"a": Link(Line(Shape(delay_s=9.0)), Line(Shape(delay_s=9.0))), "b": link}
    with pytest.raises(InputError, match=sentence):
        ordered(order, now, now, Emulator.RELAY)


@pytest.mark.parametrize("said", [{"delay_s": 0.1}, {"loss": 0.01}, {"delay_s": 1.0, "loss": 0.5}])
def test_tbf_is_not_asked_for_more_than_rates(said):
    now = {"a": Link(Line(Shape(1e6)), Line(Shape(1e6)))}
    with pytest.raises(InputError, match="tbf only limits rates") as refused:
        ordered(Order(Action.SET, values=said), now, now, Emulator.TBF)
    assert "only --rate and --queue" in refused.value.hint
    assert ordered(Order(Action.SET, values=said), now, now, Emulator.NETEM)
    slower = ordered(Order(Action.SET, values={"rate_bps": 5e5}), now, now, Emulator.TBF)
    assert slower["a"].up.shape.rate_bps == 5e5


def test_a_change_is_on_record_with_the_values_that_were_spoken_of():
    profile = Profile("p", up=Shape(1.0), down=Shape(2.0))
    assert Order(Action.SET, (UP,), values={"loss": 0.5}).shapes() == {"up": {"loss": 0.5}}
    told = Order(Action.SET, profile=profile, values={"queue_bytes": 7}).shapes()
    assert told["down"] == {
        "rate_bps": 2.0,
        "delay_s": 0.0,
        "jitter_s": 0.0,
        "loss": 0.0,
        "queue_bytes": 7,
        "burst_bytes": None,
    }
    assert Order(Action.CUT).shapes() == {"up": {}, "down": {}}


def test_links_that_differ_from_the_file_are_told_in_a_sentence():
    profile = Profile("p", up=Shape(1e6))
    nodes = tuple(Node(name, 1, NodeKind.SENSOR, "p") for name in "abc")
    filed = as_filed(Topology("t", 1, (profile,), nodes))
    cut = replace(filed["a"], up=replace(filed["a"].up, cut=True))
    slow = Link(Line(Shape(5e5)), filed["b"].down)
    differences = differing({"a": cut, "b": slow, "c": filed["c"], "stranger": slow}, filed)
    assert sentence_on(differences) == "2 links are not as the file says: a cut, b changed"
    assert sentence_on({"a": "cut"}) == "1 link is not as the file says: a cut"
    assert sentence_on({}) == ""


def entry(action: str, *names: str, directions: tuple[str, ...] = BOTH) -> dict:
    return {"action": action, "links": list(names), "directions": list(directions)}


def test_the_record_tells_which_links_may_still_be_changed():
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
    filed = {"a": uncut(one), "b": uncut(other)}
    now, record = dict(filed), []
    for order, name in history:
        done = ordered(order, {name: now[name]}, filed, Emulator.RELAY)
        now.update(done)
        if done:
            record.append(entry(order.action, *done, directions=order.directions))
    assert differing(now, filed).keys() <= set(still_changed(record))


def uncut(link: Link) -> Link:
    """No file says that a link is cut."""
    return Link(Line(link.up.shape), Line(link.down.shape))
