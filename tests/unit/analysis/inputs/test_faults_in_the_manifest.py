"""Faults of the scenario in the manifest."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.manifest import NEVER_NS, downtimes, was_down
from analysis.report.sections.actions import fault_rows

actions = st.sampled_from(["crash", "stop", "start", "cut", "restore"])


def faults(*entries: tuple[int, str]) -> dict:
    return {
        "actions": [
            {"t_ns": at, "action": what, "targets": ["a"], "details": {}} for at, what in entries
        ]
    }


def test_a_node_is_down_from_its_end_until_it_begins_again():
    times = downtimes(faults((5, "crash"), (9, "start"), (12, "stop")))
    assert times == {"a": [(5, 9), (12, NEVER_NS)]}
    assert [at for at in (4, 5, 8, 9, 11, 12, 99) if was_down(times, "a", at)] == [5, 8, 12, 99]
    assert not was_down(times, "b", 6)


def test_a_cut_link_is_no_dead_node():
    assert downtimes(faults((5, "cut"), (9, "restore"))) == {}
    assert downtimes({}) == {}


@given(st.lists(st.tuples(st.integers(0, 50), actions), max_size=12))
def test_downtimes_never_overlap(entries):
    for times in downtimes(faults(*entries)).values():
        ends = [moment for span in times for moment in span]
        assert ends == sorted(ends)


def test_the_report_says_when_which_nodes_were_hit():
    entries = [{"t_ns": 3_500_000_000, "action": "crash", "targets": ["a", "b"], "details": {}}]
    assert fault_rows({"actions": entries}, 1_000_000_000) == [
        {"when": "2.5 s", "what": "crashed", "nodes": "a, b"}
    ]


def test_actions_are_listed_with_marks_and_without_those_that_failed():
    done = [
        {"t_ns": 3, "action": "mark", "targets": [], "details": {"name": "the slope moves"}},
        {"t_ns": 1, "action": "stop", "targets": ["a"], "details": {}},
        {"t_ns": 2, "action": "start", "targets": ["a"], "details": {}},
        {"t_ns": 4, "action": "crash", "targets": ["a"], "details": {"failed": "no keeper"}},
    ]
    assert downtimes({"actions": done}) == {"a": [(1, 2)]}
    rows = fault_rows({"actions": done}, 0)
    assert [row["what"] for row in rows] == ["stopped in order", "started again", "the slope moves"]
