"""The report's sentence and chart on the machine."""

import pytest

from analysis.inputs.machine import read_rows
from analysis.inputs.run_folder import read_run
from analysis.report.sections.machine import MOST_POINTS, chart_rows, machine, sentence
from support.runs.machine_rows import PLAYED_NS, machine_row, quiet, write_rows
from support.runs.star_runs import StarRun

KNOWN = {
    "ok": True,
    "reasons": [],
    "cpu_idle_min": 0.234,
    "cpu_idle_median": 0.61,
    "wakeup_p99_s": 0.0031,
    "wakeup_max_s": 0.0122,
    "wakeup_limit_s": 0.02,
}


@pytest.mark.parametrize(
    ("known", "begins"),
    [
        (None, "Unknown: the machine was not monitored"),
        ({**KNOWN, "ok": False}, "No. "),
        ({**KNOWN, "cpu_idle_min": None}, "No problem was found"),
    ],
)
def test_the_headline_comes_first(known, begins):
    assert sentence(known).startswith(begins)


def test_a_yes_says_by_how_much():
    assert sentence(KNOWN).replace("\u00a0", " ") == (
        "Yes. In the busiest second 23 % of the processors' time was idle, in half of the seconds at least 61 %. "
        "99 % of the wake-ups of an ordinary process came within 3.1 ms (limit: 20.0 ms), all within 12.2 ms."
    )


@pytest.fixture
def rows_of(tmp_path):
    def make(rows):
        StarRun(sensors=1, subscribers=1).write(tmp_path / "run")
        write_rows(tmp_path / "run", rows)
        return read_rows(read_run(tmp_path / "run"))

    return make


def test_a_point_stands_in_the_middle_of_its_second(rows_of):
    points = chart_rows(rows_of(quiet()), PLAYED_NS)
    assert [point["at_s"] for point in points] == [second + 0.5 for second in range(-2, 10)]
    assert points[0]["cpu_used"] == pytest.approx(0.2)


def test_a_long_run_keeps_its_worst_seconds(rows_of):
    bad = {"cpu_idle": 0.0, "wakeup_max_s": 0.7}
    rows = [machine_row(second, **(bad if second == 3333 else {})) for second in range(4000)]
    points = chart_rows(rows_of(rows), PLAYED_NS)
    assert len(points) <= MOST_POINTS
    assert max(point["cpu_used"] for point in points) == 1.0
    assert max(point["delay_s"] for point in points) == 0.7


def test_rows_too_short_to_judge_are_not_drawn(rows_of):
    assert chart_rows(rows_of([machine_row(1, span_s=0.01)]), PLAYED_NS) == []


@pytest.mark.parametrize(("played_s", "shades"), [(10.0, 2), (None, 0)])
def test_the_chart_has_both_curves_their_limits_and_the_scenario_shaded(rows_of, played_s, shades):
    points = chart_rows(rows_of(quiet()), PLAYED_NS)
    limits = {"cpu_used": 0.9, "delay_s": 0.02}
    text = str(machine(points, played_s, limits, "busy"))
    assert text.startswith('<svg role="img" aria-label="busy"')
    assert "processors in use" in text
    assert "latest wake-up" in text
    assert text.count("var(--accent)") >= 2
    assert text.count("var(--care)") == 2
    assert text.count('fill="var(--line)"') == shades
