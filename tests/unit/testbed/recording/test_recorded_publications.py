"""The record of a run: the publications, their times and lateness, and the planned ones that never were."""

import json
import statistics

from hypothesis import given
from hypothesis import strategies as st

from testbed.recording.lateness import lateness, sentence
from testbed.recording.publications import (
    as_lines,
    never_published,
    read_planned_publications,
    read_recorded_publications,
    recorded_publications,
)
from testbed.scenario import Publication

START_NS = 1_800_000_000_000_000_000
ALERT = Publication(2_000, "sensor", "alerts", 5, 100)

actions = st.builds(
    Publication,
    st.integers(0, 10**12),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["alerts", "readings"]),
    st.integers(1, 5),
    st.integers(0, 2000),
    st.sampled_from([(), (1, 2), (3, 4, 5)]),
)


def logged(publication: Publication, late_ns: int = 0, identity: str = "0") -> dict[str, object]:
    """A line of a publisher's log."""
    line = {
        "t": START_NS + publication.at_ns + late_ns,
        "node": publication.node,
        "event": "publish",
        "id": identity,
        "topic": publication.topic,
        "priority": publication.priority,
        "size": publication.size,
        "late_ns": late_ns,
    }
    return line | ({"place": list(publication.place)} if publication.place else {})


def test_a_publication_is_on_record_with_its_plan_its_time_and_its_lateness() -> None:
    (row,) = recorded_publications([ALERT], [logged(ALERT, 300, "2a")], START_NS)
    assert (row.at_ns, row.due_ns, row.late_ns, row.planned) == (2_300, 2_000, 300, True)
    assert (row.node, row.topic, row.priority, row.size, row.id) == (
        *("sensor", "alerts", 5, 100, "2a"),
    )
    assert row.t_ns == START_NS + 2_300


def test_injected_publications_have_no_planned_time_and_no_lateness() -> None:
    (row,) = recorded_publications(
        [ALERT], [logged(Publication(7, "sensor", "alerts", 5, 100))], START_NS
    )
    assert (row.planned, row.due_ns, row.late_ns) == (False, None, None)
    assert never_published([ALERT], [row]) == [ALERT]


def test_publications_before_the_scenario_are_no_part_of_it() -> None:
    early = logged(Publication(-1, "sensor", "alerts", 5, 100))
    other = {"t": START_NS, "node": "sensor", "event": "ready"}
    assert recorded_publications([ALERT], [early, other], START_NS) == []


def test_of_two_equal_publications_the_lost_one_is_found() -> None:
    rows = recorded_publications([ALERT, ALERT], [logged(ALERT)], START_NS)
    assert [row.planned for row in rows] == [True]
    assert never_published([ALERT, ALERT], rows) == [ALERT]


@given(
    st.lists(st.tuples(actions, st.integers(0, 10**8), st.booleans()), max_size=30), st.randoms()
)
def test_record_and_plan_account_for_every_publication(planned, chance) -> None:
    """For any publications, and any order of log lines; a publication without a log line never happened."""
    lines = [
        logged(publication, late, f"{place:x}")
        for place, (publication, late, done) in enumerate(planned)
        if done
    ]
    chance.shuffle(lines)
    plan = [publication for publication, _, _ in planned]
    rows = recorded_publications(plan, lines, START_NS)
    assert [row.at_ns for row in rows] == sorted(row.at_ns for row in rows)
    assert all(row.planned for row in rows)
    assert len(rows) + len(never_published(plan, rows)) == len(plan)
    assert sorted(row.late_ns for row in rows) == sorted(late for _, late, done in planned if done)
    assert read_recorded_publications("".join(as_lines(rows)).splitlines()) == rows


@given(st.lists(actions, max_size=10))
def test_a_timeline_is_read_as_it_was_written(plan) -> None:
    assert read_planned_publications("".join(as_lines(plan)).splitlines()) == plan


def test_a_line_that_was_cut_off_is_left_out() -> None:
    text = json.dumps({"at_ns": 1, "node": "a", "topic": "t", "priority": 1, "size": 1})
    assert read_planned_publications([text, text[:20]]) == [Publication(1, "a", "t", 1, 1)]


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=200))
def test_lateness_equals_the_quantiles_of_the_standard_library(late) -> None:
    cuts = statistics.quantiles(late, n=100, method="inclusive")
    late_by = lateness(late)
    assert late_by is not None
    assert late_by.n == len(late)
    assert abs(late_by.p50_s - cuts[49] / 1e9) < 1e-9
    assert abs(late_by.p99_s - cuts[98] / 1e9) < 1e-9
    assert late_by.max_s == max(late) / 1e9


def test_lateness_needs_a_publication_and_is_described_in_a_sentence() -> None:
    assert lateness([]) is None
    late_by = lateness([1_000_000])
    assert late_by is not None
    assert sentence(late_by) == (
        "publications began 1.0 ms (p50), 1.0 ms (p99), at most 1.0 ms after their time"
    )
