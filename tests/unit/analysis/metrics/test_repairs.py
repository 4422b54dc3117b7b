"""The duration of a repair, from logs and from the outcome of publications."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics.events import Event
from analysis.metrics.repair import (
    BY_LOG,
    BY_MANIFEST,
    NEVER_NS,
    Death,
    Published,
    deaths_in_manifest,
    lives_without_stop,
    repairs,
)

S = 1_000_000_000
BROKERS = ("a", "b", "c")


def published(at_s: float, took_s: float | None, origin: str = "slope", missed: int = 0):
    """A publication to three subscribers: all but `missed` received it, the last of them after `took_s`."""
    begin = round(at_s * S)
    done = None if missed or took_s is None else begin + round(took_s * S)
    return Published(origin, "alert", 5, begin, 3, 3 - missed, done)


def repaired(*publications: Published, events: tuple[Event, ...] = ()) -> dict:
    (row,) = repairs([Death("a", 10 * S, BY_LOG)], publications, events, BROKERS)
    return row


USUAL = [published(at, 0.2) for at in (5, 6, 7)]


def test_a_death_that_affected_no_publication_took_no_repair():
    row = repaired(*USUAL, published(11, 0.3), published(30, 0.2))
    assert (row["flows"], row["flows_hit"], row["healed"], row["repair_s"]) == (1, 0, True, 0.0)


def test_the_repair_ends_when_the_first_publication_is_with_all_again():
    row = repaired(
        *USUAL,
        published(11, None, missed=2),
        published(12, None, missed=1),
        published(13, 0.5),
        published(14, 0.2),
    )
    assert (row["flows_hit"], row["lost"], row["healed"]) == (1, 3, True)
    assert row["repair_s"] == 3.5


def test_a_publication_held_until_the_repair_shows_how_long_that_took():
    row = repaired(*USUAL, published(11, 4.0), published(12, 3.5))
    assert (row["lost"], row["repair_s"]) == (0, 5.0)


def test_publications_in_flight_when_the_broker_died_count():
    row = repaired(*USUAL, published(9.9, None, missed=1), published(20, 0.2))
    assert (row["lost"], row["repair_s"]) == (1, 10.2)


def test_a_publication_that_had_passed_the_dead_broker_does_not_end_the_repair():
    row = repaired(*USUAL, published(9.9, 0.2), published(11, 4.0), published(12, 3.5))
    assert (row["flows_hit"], row["repair_s"]) == (1, 5.0)


def test_a_publication_in_flight_that_arrived_late_counts_as_hit_by_the_death():
    row = repaired(*USUAL, published(9.9, 3.0), published(12.8, 0.2))
    assert (row["flows_hit"], row["lost"], row["repair_s"]) == (1, 0, 3.0)


def test_a_flow_that_ended_before_the_death_is_not_judged():
    assert repaired(*USUAL, published(9.9, None, missed=1))["flows"] == 0


def test_a_loss_long_before_the_death_is_not_attributed_to_it():
    row = repaired(*USUAL, published(8, None, missed=1), published(20, 0.2))
    assert (row["flows_hit"], row["repair_s"]) == (0, 0.0)


def test_each_flow_must_be_whole_again_and_one_that_never_is_leaves_the_overlay_broken():
    lost = [published(at, None, "hill", missed=1) for at in (11, 12)]
    row = repaired(*USUAL, published(11, None, missed=1), published(12, 0.2), *lost)
    assert (row["flows"], row["flows_hit"], row["healed"], row["repair_s"]) == (2, 2, False, None)
    healed = repaired(
        *USUAL, published(11, None, missed=1), published(12, 0.2), *lost, published(15, 0.2, "hill")
    )
    assert (healed["healed"], healed["repair_s"]) == (True, 5.2)


def test_logs_say_which_node_noticed_first_and_when_the_last_client_had_moved():
    events = (
        Event(1 * S, "slope", "connect", "a"),
        Event(1 * S, "east", "connect", "a"),
        Event(1 * S, "west", "connect", "b"),
        Event(2 * S, "b", "connect", "a"),
        Event(9 * S, "b", "disconnect", "c"),
        Event(11 * S, "b", "disconnect", "a"),
        Event(12 * S, "c", "lost-peer", "a"),
        Event(13 * S, "slope", "connect", "b"),
        Event(17 * S, "east", "connect", "c"),
        Event(18 * S, "west", "connect", "c"),
    )
    row = repaired(events=events)
    assert (row["noticed_s"], row["clients"], row["moved"], row["moved_s"]) == (1.0, 2, 2, 7.0)
    left = repaired(events=events[:8])
    assert (left["clients"], left["moved"], left["moved_s"]) == (2, 1, 3.0)


def test_a_broker_that_began_anew_without_having_stopped_had_died():
    events = [
        Event(1 * S, "a", "start", None),
        Event(5 * S, "a", "connect", "slope"),
        Event(9 * S, "a", "start", None),
        Event(20 * S, "a", "stop", None),
        Event(1 * S, "b", "start", None),
        Event(20 * S, "b", "stop", None),
        Event(20 * S + 1, "b", "disconnect", "a"),
    ]
    assert lives_without_stop(events, BROKERS) == [("a", 5 * S, 9 * S)]


def test_a_broker_that_never_stopped_had_died_unless_all_were_killed():
    events = [Event(S, node, "start", None) for node in ("a", "b")]
    assert lives_without_stop(events, BROKERS) == []
    assert lives_without_stop([*events, Event(9 * S, "b", "stop", None)], BROKERS) == [
        ("a", S, NEVER_NS)
    ]


def test_the_manifest_names_the_brokers_that_were_killed():
    actions = [
        {"t_ns": 7, "action": "crash", "targets": ["a", "slope"], "details": {}},
        {"t_ns": 9, "action": "start", "targets": ["b"], "details": {}},
    ]
    assert deaths_in_manifest({"actions": actions}, BROKERS) == [Death("a", 7, BY_MANIFEST)]
    assert deaths_in_manifest({}, BROKERS) == []


@given(
    st.lists(
        st.tuples(
            st.floats(0, 60), st.floats(0.01, 5) | st.none(), st.sampled_from(["slope", "hill"])
        ),
        max_size=20,
    )
)
def test_a_repair_is_over_within_the_run_or_not_at_all(reported):
    flow = [published(at, took, origin, int(took is None)) for at, took, origin in reported]
    row = repaired(*flow)
    ends = [one.done_ns for one in flow if one.done_ns is not None]
    assert row["flows_hit"] <= row["flows"] <= 2
    assert row["healed"] == (row["repair_s"] is not None)
    if row["repair_s"]:
        assert 0 < row["repair_s"] <= (max(ends) - 10 * S) / 1e9
