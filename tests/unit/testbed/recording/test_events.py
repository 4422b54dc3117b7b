"""All events of a run form one sequence in the order of time, each once."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.recording.events import (
    Deliveries,
    EventFilter,
    EventQueue,
    ManifestEvents,
    journal_event,
    log_event,
)
from testbed.topology import load_text

LAB = load_text(
    """
name: valley
nodes:
  broker: {kind: broker, link: lan}
  sensor: {kind: sensor, link: lan}
  siren: {kind: subscriber, link: lan, topics: [alerts]}
  office: {kind: subscriber, link: lan, topics: [alerts, readings]}
""",
    "valley.yaml",
)
PUBLISHED = {
    "t": 5,
    "node": "sensor",
    "event": "publish",
    "id": "a",
    "topic": "alerts",
    "priority": 5,
    "size": 100,
    "late_ns": 1,
}
CRASH = {"t_ns": 7, "due_ns": 6, "action": "crash", "targets": ["siren"], "details": {}}
MARK = {"t_ns": 8, "due_ns": 8, "action": "mark", "targets": [], "details": {"name": "now"}}
CUT = {"t_ns": 9, "action": "cut", "links": ["office"], "directions": ["up", "down"]}


def test_log_entries_keep_their_fields_and_get_a_kind():
    event = log_event(PUBLISHED)
    assert event == {**PUBLISHED, "kind": "publication"}
    assert log_event({"t": 1, "node": "a", "event": "drop"})["kind"] == "loss"
    assert log_event({"t": 1, "node": "a", "event": "connect"})["kind"] == "connection"
    assert log_event({"t": 1, "node": "a", "event": "ready"})["kind"] == "node"


def test_a_node_that_starts_is_an_event_of_nodes_whatever_kind_of_node_it_is():
    event = log_event({"t": 1, "node": "a", "event": "start", "kind": "broker"})
    assert event == {"t": 1, "node": "a", "event": "start", "kind": "node", "role": "broker"}
    assert event in EventFilter(kinds=frozenset({"node"}))


def test_steps_of_the_journal_are_events_of_the_run_and_a_scenario_begins_with_its_clock():
    assert journal_event({"t": 1, "step": "wire", "targets": ["a"]}) == {
        "t": 1,
        "kind": "run",
        "event": "wire",
        "node": None,
        "targets": ["a"],
    }
    assert journal_event({"t": 1, "step": "play", "start_ns": 4})["t"] == 4


def test_a_growing_manifest_yields_each_event_once():
    source, manifest = ManifestEvents(), {"actions": [CRASH], "play": None}
    (crash,) = source.fresh(manifest, journalled=False)
    assert (crash["t"], crash["kind"], crash["event"]) == (7, "fault", "crash")
    assert crash["targets"] == ["siren"]
    assert list(source.fresh(manifest, journalled=False)) == []
    more = {"actions": [CRASH, MARK], "link_changes": [CUT]}
    mark, cut = source.fresh({**more, "play": None}, journalled=False)
    assert (mark["kind"], mark["details"], cut["kind"], cut["links"]) == (
        *("mark", {"name": "now"}, "link", ["office"]),
    )
    play = {"start_ns": 2, "end_ns": 20, "settled": True}
    begun, over = source.fresh({**more, "play": play}, journalled=False)
    assert (begun["t"], begun["event"], over["t"], over["event"]) == (2, "play", 20, "played")
    assert list(source.fresh({**more, "play": play}, journalled=False)) == []


def test_undelivered_publications_are_lost_at_the_subscribers_that_wanted_them():
    deliveries = Deliveries(LAB)
    deliveries.note(log_event(PUBLISHED))
    deliveries.note(log_event({**PUBLISHED, "id": "b", "topic": "readings", "priority": 1}))
    deliveries.note({"t": 6, "kind": "reception", "event": "receive", "id": "a", "node": "siren"})
    lost = list(deliveries.lost(30))
    assert [(one["id"], one["node"], one["priority"]) for one in lost] == [
        ("a", "office", 5),
        ("b", "office", 1),
    ]
    assert {(one["t"], one["kind"], one["origin"]) for one in lost} == {(30, "loss", "sensor")}


def test_filters_are_by_kind_node_and_level():
    crash = next(ManifestEvents().fresh({"actions": [CRASH]}, journalled=False))
    published = log_event(PUBLISHED)
    for wanted, shown in (
        (EventFilter(), [crash, published]),
        (EventFilter(kinds=frozenset({"fault"})), [crash]),
        (EventFilter(nodes=frozenset({"siren"})), [crash]),
        (EventFilter(nodes=frozenset({"sensor"})), [published]),
        (EventFilter(levels=frozenset({5})), [published]),
        (EventFilter(levels=frozenset({4})), []),
    ):
        assert [each for each in (crash, published) if each in wanted] == shown


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=40))
def test_events_that_arrive_within_the_delay_are_shown_in_order(arrivals) -> None:
    """Each event becomes known at most 5 after its time; after this delay, all are in order, each once."""
    row, shown = EventQueue(), []
    known = sorted((t + late, t) for t, late in arrivals)
    for now in range(60):
        row.add({"t": t} for at, t in known if at == now)
        shown += [event["t"] for event in row.until(now - 5)]
    shown += [event["t"] for event in row.until(None)]
    assert shown == sorted(t for t, _ in arrivals)
