"""The verdict on whether a run's numbers can be trusted."""

from dataclasses import replace

import pytest

from analysis.inputs.run_folder import read_run
from analysis.metrics.fidelity import Evidence, verdict
from support.runs.star_runs import StarRun

GOOD = Evidence(0.001, (), {}, 0, 0, 0, lost_deliveries=0)


def run_with(tmp_path, **manifest):
    folder = tmp_path / "run"
    StarRun(sensors=1, subscribers=1).write(folder, **manifest)
    return read_run(folder)


def test_a_run_that_kept_up_is_good(tmp_path):
    assert verdict(run_with(tmp_path), GOOD) == {"ok": True, "reasons": [], "machine": None}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            {"capture": {"broker": {"dropped": 3}, "town-1": {"dropped": 9}}},
            "lost 12 packets on 2 links, most on town-1",
        ),
        ({"capture": None}, "does not say"),
        ({"details": {"relay": {"late_max_s": 0.5}}}, "up to 500 ms late"),
        ({"warnings": ["sensor-1 was restarted."]}, "sensor-1 was restarted."),
    ],
)
def test_each_doubt_of_the_manifest_is_a_reason(tmp_path, manifest, expected):
    result = verdict(run_with(tmp_path, **manifest), GOOD)
    assert not result["ok"]
    assert [expected in reason for reason in result["reasons"]] == [True]


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({"late_p99_s": 0.05}, "50 ms after"),
        ({"lost_tail_links": ("broker",)}, "Capture broker has"),
        ({"lost_tail_links": ("a", "b", "c", "d")}, "4 captures (a, b, c, ...) have"),
        (
            {"missing_bytes": {"a": 5, "b": 6}},
            "11 bytes of TCP streams are missing from the captures of a and b.",
        ),
        ({"compressed_messages": 2}, "compressed"),
        ({"orphan_pieces": 2}, "2 pieces belong to messages whose beginning is missing"),
        ({"unlogged_messages": 2}, "in no node's log"),
        ({"unseen_receptions": 2}, "not in the captures"),
    ],
)
def test_each_doubt_of_the_captures_is_a_reason(tmp_path, evidence, expected):
    result = verdict(run_with(tmp_path), replace(GOOD, **evidence))
    assert [expected in reason for reason in result["reasons"]] == [True]


@pytest.mark.parametrize(
    ("lost", "more", "doubted"),
    [(0, {}, False), (1, {}, True), (1, {"under_way": 1}, True), (1, {"under_way": 0}, False)],
)
def test_an_end_before_everything_had_arrived_is_a_reason_only_if_something_may_still_have_come(
    tmp_path, lost, more, doubted
):
    run = run_with(tmp_path, play={"start_ns": 1, "end_ns": 2, "settled": False, **more})
    result = verdict(run, replace(GOOD, lost_deliveries=lost))
    assert ["still in transit" in reason for reason in result["reasons"]] == [True] * doubted


def test_links_overloaded_on_purpose_may_end_within_messages(tmp_path):
    play = {"start_ns": 1, "end_ns": 2, "settled": False, "overloaded": True}
    evidence = replace(GOOD, lost_deliveries=3, missing_bytes={"slow": 1000})
    assert verdict(run_with(tmp_path, play=play), evidence)["reasons"] == []


def test_links_without_a_capture_are_named(tmp_path):
    run = run_with(tmp_path)
    run.pcap(run.nodes[1]).unlink()
    assert verdict(run, GOOD)["reasons"] == ["Link sensor-1 has no capture."]


def test_a_run_without_captures_says_that_nothing_was_measured(tmp_path):
    run = run_with(tmp_path)
    run.manifest["topology"]["capture"]["enabled"] = False
    assert "switches the capture off" in verdict(run, GOOD)["reasons"][0]


def test_a_run_without_publications_has_no_lateness(tmp_path):
    assert verdict(run_with(tmp_path), replace(GOOD, late_p99_s=None))["ok"]


def test_the_relay_not_being_used_is_no_reason(tmp_path):
    assert verdict(run_with(tmp_path, details={"relay": None}), GOOD)["ok"]


def test_the_lateness_of_publications_is_reported_where_it_was_recorded(tmp_path):
    late = {"n": 3, "p50_s": 0.001, "p99_s": 0.002, "max_s": 0.002}
    play = {"start_ns": 0, "end_ns": 1, "settled": True, "lateness": late}
    result = verdict(run_with(tmp_path, play=play), GOOD)
    assert result["lateness"] == {"publications": late, "actions": None}
    assert result["ok"]
