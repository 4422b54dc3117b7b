"""The benchmark of timing plays publications once a second, and faults and a start in each second."""

from collections import defaultdict

from benchmarks.support.harness import Report
from benchmarks.timing import GOAL_S, kind_of, note, topology
from testbed.recording.lateness import lateness
from testbed.scenario import compile_actions, compile_timeline
from testbed.topology import load_text


def test_the_lab_has_the_given_publishers_and_in_each_second_faults_and_a_start():
    lab = load_text(topology("timing-5", 5, 10), "timing-5.yaml")
    assert len(compile_timeline(lab)) == 5 * 10
    times: dict[str, list[float]] = defaultdict(list)
    struck = set()
    for one in compile_actions(lab):
        kind = kind_of({"action": one.kind.value, "targets": [*one.nodes]})
        times[kind].append(one.at_ns / 1e9)
        struck.update(one.nodes)
    assert times == {
        "faults": [place + part for place in range(1, 9) for part in (0.25, 0.5)],
        "starts": [place + 2.0 for place in range(8)],
        "behind_starts": [place + 2.02 for place in range(8)],
    }
    assert not any(action.node in struck for action in compile_timeline(lab))


def test_the_benchmark_compares_the_99th_percentile_with_its_goal():
    report = Report({"publications_1": 1.0})
    note(report, "publications_1", lateness([round(2 * GOAL_S * 1e9)] * 3))
    note(report, "faults_1", lateness([]))
    assert report.ratios == {"publications_1": 2.0}
    assert report.above == ["publications_1"]
    assert report.details["publications_1"]["p99_s"] == "40.00 ms"
