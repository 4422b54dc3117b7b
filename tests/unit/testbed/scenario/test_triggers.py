"""Triggers of events: when they fire, and when they never do. Compared with a search in all observations."""

from dataclasses import replace
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from testbed.scenario.schedule import Schedule
from testbed.scenario.triggers import Reception, Triggers, place_in_overlay, reception
from testbed.topology.model import (
    ActionEvent,
    ActionKind,
    Node,
    NodeKind,
    Profile,
    PublishEvent,
    Scenario,
    Topology,
    Trigger,
    TriggerKind,
)

SECOND = 1_000_000_000
RECEIVED = Trigger(TriggerKind.RECEIVED, ("siren",), level=5)
SLOW = Trigger(TriggerKind.DELAY, level=4, percentile=95, above_s=2.0, over_s=10.0)
CALM = Trigger(TriggerKind.STABLE, quiet_s=3.0)
LAB = Topology(
    "lab",
    1,
    (Profile("lan"),),
    (
        Node("broker", 1, NodeKind.BROKER, "lan"),
        Node("sensor", 2, NodeKind.SENSOR, "lan"),
        Node("siren", 3, NodeKind.SUBSCRIBER, "lan", topics=("alerts",)),
    ),
)
RECEPTIONS = st.builds(
    Reception,
    st.integers(0, 60 * SECOND),
    st.sampled_from(["siren", "office"]),
    st.integers(1, 5),
    st.sampled_from(["alerts", "readings"]),
    st.integers(0, 5 * SECOND),
)


def received(at_s: float, node: str = "siren", level: int = 5, delay_s: float = 0.1) -> Reception:
    return Reception(round(at_s * SECOND), node, level, "alerts", round(delay_s * SECOND))


def fires(trigger: Trigger, receptions: list[Reception]) -> bool:
    return Triggers({7: trigger}, 1.0).on_receptions(receptions) == [7]


def test_a_message_of_the_level_at_that_node_fires_once():
    triggers = Triggers({7: RECEIVED}, 1.0)
    assert not triggers.on_receptions([received(1, level=4), received(1, node="office")])
    assert triggers.on_receptions([received(2), received(3)]) == [7]
    assert not triggers
    assert not triggers.on_receptions([received(4)])


def test_a_trigger_counts_the_messages_that_it_needs():
    assert not fires(replace(RECEIVED, count=3), [received(1), received(2)])
    assert fires(replace(RECEIVED, count=3), [received(1), received(2), received(3)])


def test_only_recent_receptions_count_for_the_delay():
    assert not fires(SLOW, [received(at, delay_s=0.1) for at in range(100)])
    assert fires(SLOW, [received(1, delay_s=2.1)])
    many = [received(at / 10, delay_s=0.1) for at in range(100)]
    assert not fires(SLOW, [*many, *(received(9.95, delay_s=9) for _ in range(4))])
    assert fires(SLOW, [*many, *(received(9.95, delay_s=9) for _ in range(8))])


@given(st.lists(RECEPTIONS, max_size=40), st.floats(1, 100), st.floats(0.5, 20))
def test_delays_are_judged_as_by_a_search_in_all_receptions(receptions, percentile, over_s):
    trigger = replace(SLOW, percentile=percentile, over_s=over_s)
    fitting = [
        each for each in sorted(receptions, key=lambda s: (s.at_ns, s.node)) if each.level >= 4
    ]
    expected = False
    for number, now in enumerate(fitting):
        recent = [
            each.delay_ns
            for each in fitting[: number + 1]
            if each.at_ns > now.at_ns - round(over_s * SECOND)
        ]
        worst = sorted(recent)[max(1, ceil(percentile / 100 * len(recent))) - 1]
        expected = expected or worst > 2 * SECOND
    assert fires(trigger, receptions) == expected


def test_the_window_is_divided_by_the_speed_and_delays_are_not():
    half = replace(SLOW, percentile=50, above_s=3.0)
    mixed = [*(received(at / 10, delay_s=1) for at in range(30)), received(4.5, delay_s=4)]
    assert not Triggers({7: half}, 1.0).on_receptions(mixed)
    assert Triggers({7: half}, 10.0).on_receptions(mixed) == [7]  # the window is the last second


def test_a_window_shorter_than_any_clock_still_holds_the_latest_reception():
    brief = replace(SLOW, over_s=1e-9)
    assert Triggers({7: brief}, 1_000.0).on_receptions([received(1), received(2, delay_s=3)]) == [7]


def test_the_quiet_time_of_an_overlay_is_divided_by_the_speed():
    triggers = Triggers({7: CALM}, 2.0)
    assert not triggers.on_overlay("a", 0)
    assert not triggers.on_overlay("a", SECOND)
    assert triggers.on_overlay("a", 3 * SECOND // 2) == [7]
    swift = Triggers({7: CALM}, 1_000.0)
    assert not swift.on_overlay("a", 0)  # one observation is not enough
    assert swift.on_overlay("a", SECOND) == [7]


def test_an_overlay_is_stable_when_no_place_has_changed_for_a_while():
    triggers = Triggers({7: CALM}, 1.0)
    for at_s, places in ((0, "a"), (1, "b"), (2, "b"), (3, None), (4, "b"), (6, "b")):
        assert triggers.on_overlay(places, at_s * SECOND) == []
    assert triggers.on_overlay("b", 7 * SECOND) == [7]


def test_volatile_values_are_no_part_of_a_brokers_place():
    one = {"graph": {"vector": "1", "load": 3.0}, "duties": 3}
    assert place_in_overlay(one) == place_in_overlay({**one, "duties": 9})
    assert place_in_overlay({"vector": "1", "load": 3.0}) == place_in_overlay({"vector": "1"})
    assert place_in_overlay({"vector": "1"}) != place_in_overlay({"vector": "2"})


def test_a_log_entry_after_the_start_is_read_as_a_reception():
    line = {
        "t": 5 * SECOND,
        "node": "siren",
        "event": "receive",
        "priority": 5,
        "topic": "alerts",
        "published_ns": 4 * SECOND,
    }
    assert reception(line, 2 * SECOND) == Reception(3 * SECOND, "siren", 5, "alerts", SECOND)
    assert reception(line, 6 * SECOND) is None
    assert reception({**line, "event": "duplicate"}, 0) is None


def schedule(*events: PublishEvent | ActionEvent, speed: float = 1.0) -> Schedule:
    scenario = Scenario(
        60.0,
        publish=tuple(each for each in events if isinstance(each, PublishEvent)),
        actions=tuple(each for each in events if isinstance(each, ActionEvent)),
        speed=speed,
    )
    return Schedule(replace(LAB, scenario=scenario))


def test_a_triggered_action_begins_then_and_is_undone_after_its_duration():
    cut = ActionEvent(2.0, ActionKind.CUT, ("siren",), for_s=5.0, when=RECEIVED)
    plan = schedule(cut)
    assert plan.next_ns is None
    plan.on_receptions([received(10)], round(10.5 * SECOND))
    performed = [(each.at_ns / SECOND, each.kind.value) for each in plan.due(60 * SECOND)]
    assert performed == [(10.5, "mark"), (12.5, "cut"), (17.5, "restore")]
    assert plan.performed[0].details["name"] == "fired: siren has received level 5"


def test_triggered_publications_begin_then_and_end_with_the_scenario():
    photos = PublishEvent(1.0, ("sensor",), "photos", 2, 9, period_s=10.0, when=RECEIVED)
    plan = schedule(photos)
    actions = plan.on_receptions([received(30)], 30 * SECOND)
    assert [each.at_ns / SECOND for each in actions] == [31, 41, 51]


def test_a_faster_scenario_waits_and_lasts_less():
    cut = ActionEvent(2.0, ActionKind.CUT, ("siren",), for_s=4.0, when=RECEIVED)
    plan = schedule(cut, speed=2.0)
    plan.on_receptions([received(10)], 10 * SECOND)
    performed = [(each.at_ns / SECOND, each.kind.value) for each in plan.due(60 * SECOND)]
    assert performed == [(10, "mark"), (11, "cut"), (13, "restore")]


def test_a_trigger_that_never_fires_is_reported_at_its_deadline_or_at_the_end():
    late = replace(RECEIVED, within_s=20.0)
    mark = ActionEvent(0.0, ActionKind.MARK, (), details=(("name", "warned"),), when=late)
    plan = schedule(mark, replace(mark, when=CALM))
    assert plan.give_up(19 * SECOND) == []
    assert plan.give_up(20 * SECOND) == ["did not fire: siren has received level 5"]
    assert plan.on_receptions([received(21)], 21 * SECOND) == ()
    assert plan.give_up(60 * SECOND, over=True) == ["did not fire: the overlay is stable for 3 s"]
    assert [each.details["trigger"] for each in plan.due(60 * SECOND)] == ["missed", "missed"]
    assert not plan.triggers


def test_a_node_that_is_down_is_not_crashed_again():
    crash = ActionEvent(5.0, ActionKind.CRASH, ("siren",))
    again = ActionEvent(0.0, ActionKind.CRASH, ("siren",), when=RECEIVED)
    plan = schedule(crash, again)
    plan.due(6 * SECOND)
    plan.on_receptions([received(7)], 7 * SECOND)
    assert [each.kind.value for each in plan.due(60 * SECOND)] == ["mark"]
