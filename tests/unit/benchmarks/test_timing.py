"""The benchmark of timing plays what it says: publications once a second, and a fault in each second."""

from benchmarks.support.report import Report
from benchmarks.timing import GOAL_S, note, topology
from testbed.recording.lateness import lateness
from testbed.scenario import compile_incidents, compile_timeline
from testbed.topology import load_text


def test_its_lab_has_so_many_publishers_and_a_fault_each_second():
    lab = load_text(topology("timing-5", 5, 10), "timing-5.yaml")
    assert len(compile_timeline(lab)) == 5 * 10
    incidents = compile_incidents(lab)
    assert [one.at_ns / 1e9 for one in incidents] == [place + 1.5 for place in range(8)]
    assert {one.kind.value for one in incidents} == {"crash", "cut"}
    struck = [name for one in incidents for name in one.nodes]
    assert len(set(struck)) == len(struck)
    assert not any(action.node in struck for action in compile_timeline(lab))


def test_what_is_compared_is_the_99th_percentile_with_its_goal():
    report = Report({"publications_1": 1.0})
    note(report, "publications_1", lateness([round(2 * GOAL_S * 1e9)] * 3))
    note(report, "faults_1", lateness([]))
    assert report.ratios == {"publications_1": 2.0}
    assert report.above == ["publications_1"]
    assert report.details["publications_1"]["p99_s"] == "40.00 ms"
