"""Whether the machine was fast enough for its numbers: rows of machine.jsonl in, sentences out."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.machine import quantile_s, read_watch
from analysis.inputs.run_folder import read_run
from analysis.metrics import fidelity
from analysis.metrics.fidelity import Evidence, verdict
from support.runs.machine_rows import PLAYED_NS, machine_row, quiet, write_rows
from support.runs.star_runs import StarRun

GOOD = Evidence(0.001, (), {}, 0, 0, 0, lost_deliveries=0, least_delay_p99_s=1.5)
STARVED = {"cpu_idle": 0.02, "wakeup_max_s": 0.3, "wakeups_us": [[64, 60], [40960, 40]]}


@pytest.fixture
def run_with(tmp_path):
    """run_with(rows, **manifest): a run whose machine was watched; its scenario lasts 10 s."""

    def make(rows, **manifest):
        StarRun(sensors=1, subscribers=1).write(tmp_path / "run", **manifest)
        if rows is not None:
            write_rows(tmp_path / "run", rows)
        return read_run(tmp_path / "run")

    return make


def changed(at: dict[int, dict]) -> list[dict]:
    return [machine_row(second, **at.get(second, {})) for second in range(-2, 10)]


def test_a_machine_with_capacity_to_spare_is_no_reason_for_doubt(run_with):
    result = verdict(run_with(quiet()), GOOD)
    assert result["ok"]
    assert result["machine"] == {
        "ok": True,
        "reasons": [],
        "seconds": 10.0,
        "cpu_idle_min": 0.8,
        "cpu_idle_median": 0.8,
        "wakeup_p99_s": 0.000128,
        "wakeup_max_s": 0.0009,
        "relay_late_p99_s": 0.0004,
        "relay_late_max_s": 0.0004,
        "capture_dropped": 0,
        "memory_free_min_bytes": 20_000_000_000,
        "swapped_in_bytes": 0,
        "wakeup_limit_s": 0.02,
    }


def test_a_run_whose_machine_was_not_watched_says_so_and_is_not_doubted_for_it(run_with):
    assert verdict(run_with(None), GOOD) == {"ok": True, "reasons": [], "machine": None}


def test_a_starved_machine_is_reported_with_numbers_limits_and_times(run_with):
    result = verdict(run_with(changed({4: STARVED, 7: STARVED})), GOOD)
    assert result["reasons"] == [
        "The processors were overloaded: less than 10 % was idle in 2 of 10 seconds "
        "(more than 5 % of them), first 4 s into the scenario.",
        "Processes woke up late: the 99th percentile is 41 ms (more than 20 ms), the worst 300 ms, "
        "4 s into the scenario.",
    ]
    assert result["machine"]["reasons"] == result["reasons"]
    assert not result["machine"]["ok"]


def test_the_load_of_starting_nodes_does_not_count(run_with):
    busy = {**STARVED, "relay_late_max_s": 0.5, "memory_free_bytes": 5}
    result = verdict(
        run_with(changed({-2: busy, -1: busy}), details={"relay": {"late_max_s": 0.5}}), GOOD
    )
    assert result["ok"]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            {"relay_late_max_s": 0.0345},
            "The link emulator was up to 34.5 ms late with a packet, 3 s into the scenario (more than 20 ms).",
        ),
        (
            {"memory_free_bytes": 100 << 20},
            "Memory was short: 100 MiB were left, 3 s into the scenario (less than 256 MiB).",
        ),
        (
            {"swapped_in_bytes": 12 << 20},
            "The machine swapped: 12 MiB came back from disk within a second, 3 s into the scenario (more than 1 MiB).",
        ),
    ],
)
def test_each_shortage_is_a_sentence(run_with, row, sentence):
    assert verdict(run_with(changed({3: row})), GOOD)["reasons"] == [sentence]


def test_one_busy_second_in_twenty_is_allowed(run_with):
    play = {"start_ns": PLAYED_NS, "end_ns": PLAYED_NS + 20 * 10**9, "settled": True}
    rows = [machine_row(second, cpu_idle=0.0 if second == 5 else 0.5) for second in range(20)]
    assert verdict(run_with(rows, play=play), GOOD)["ok"]


def test_lost_packets_are_reported_with_the_time_of_the_first(run_with):
    rows = [machine_row(second, capture_dropped=3 if second >= 6 else 0) for second in range(10)]
    result = verdict(run_with(rows, capture={"broker": {"dropped": 3}}), GOOD)
    assert result["reasons"] == [
        "The capture lost 3 packets on 1 links, most on broker; first 6 s into the scenario."
    ]
    assert result["machine"]["capture_dropped"] == 3


def test_a_monitor_that_died_is_noticed(run_with):
    result = verdict(run_with(quiet(range(-2, 4))), GOOD)
    assert result["reasons"] == [
        "The machine was monitored for only 4 of the 10 seconds of the scenario."
    ]


def test_a_monitor_that_was_held_up_itself_has_watched_all_the_same(run_with):
    rows = [machine_row(2, span_s=3.0), machine_row(9, span_s=7.0)]
    assert verdict(run_with(rows), GOOD)["ok"]


def test_a_file_without_rows_is_noticed(run_with):
    assert verdict(run_with([]), GOOD)["reasons"] == [
        "The machine was monitored for only 0 of the 10 seconds of the scenario."
    ]


@pytest.mark.parametrize("torn", ["", "{", '{"t": 5}', "[]", '{"t": "x"}', "null", '"text"'])
def test_torn_lines_are_left_out(run_with, torn):
    run = run_with(quiet())
    whole = run.machine.read_text()
    run.machine.write_text(f"{torn}\n{whole}{torn}")
    assert verdict(run, GOOD)["ok"]


def test_rows_with_values_of_a_wrong_kind_are_left_out(run_with):
    rows = [*quiet(), machine_row(3, cpu_idle="busy"), machine_row(4, wakeups_us=5)]
    assert verdict(run_with(rows), GOOD)["machine"]["cpu_idle_min"] == 0.8


def test_a_machine_without_some_values_is_judged_by_the_others(run_with):
    silent = {"cpu_idle": None, "memory_free_bytes": None, "relay_late_max_s": None}
    result = verdict(run_with([machine_row(second, **silent) for second in range(10)]), GOOD)
    assert result["ok"]
    assert result["machine"]["cpu_idle_min"] is None


def test_without_a_scenario_the_time_from_the_first_publication_on_counts(run_with):
    published = replace(GOOD, first_published_ns=PLAYED_NS + 5 * 10**9)
    run = run_with(changed({3: STARVED, 7: STARVED}), play=None)
    result = verdict(run, published)
    assert result["machine"]["seconds"] == 5.0
    assert all("2 s after the first publication" in reason for reason in result["reasons"])
    assert len(result["reasons"]) == 2


def test_a_lab_in_which_nothing_was_published_is_not_doubted(run_with):
    result = verdict(run_with(changed({3: STARVED}), play=None), GOOD)
    assert result["ok"]
    assert result["machine"]["seconds"] == 0


@pytest.mark.parametrize(
    ("least_delay_s", "limit_s"),
    [(None, 0.02), (7.5, 0.02), (0.1, 0.01), (0.002, 0.001)],
)
def test_short_delays_need_a_quicker_machine(least_delay_s, limit_s):
    assert fidelity.wakeup_limit_s(least_delay_s) == pytest.approx(limit_s)


def test_wakeups_that_are_good_enough_for_seconds_are_too_late_for_milliseconds(run_with):
    late = {"wakeups_us": [[64, 50], [4096, 50]], "wakeup_max_s": 0.004}
    run = run_with([machine_row(second, **late) for second in range(10)])
    assert verdict(run, GOOD)["ok"]
    (reason,) = verdict(run, replace(GOOD, least_delay_p99_s=0.02))["reasons"]
    assert "4 ms (more than 2 ms, a tenth of the shortest delays measured)" in reason


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_quantile_of_histograms_is_that_of_the_counted_durations(durations, share):
    histograms = [((duration, 1),) for duration in durations]
    found = quantile_s(histograms, share, [max(durations) / 1e6])
    at_most = sum(duration / 1e6 <= found for duration in durations)
    assert at_most >= share * len(durations)
    below = sum(duration / 1e6 < found for duration in durations)
    assert below < share * len(durations)


def test_a_quantile_without_durations_is_unknown():
    assert quantile_s([], 0.99, []) is None


@given(st.lists(st.floats(-3, 12), max_size=30))
def test_the_watched_time_never_exceeds_the_number_of_rows(tmp_path_factory, times):
    folder = tmp_path_factory.mktemp("runs") / "run"
    StarRun(sensors=1, subscribers=1).write(folder)
    write_rows(folder, [machine_row(time) for time in times])
    watch = read_watch(read_run(folder), None)
    assert watch is not None
    assert len(watch.counting) <= len(times)
    assert watch.watched_s <= len(times)
    assert json.dumps(verdict(read_run(folder), GOOD))
