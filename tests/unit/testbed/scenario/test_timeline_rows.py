"""The timeline of a scenario: repetitions share a row, and the time axis shows their moments."""

import io
from pathlib import Path

from rich.console import Console

from testbed.cli.commands.plan import WIDTH, abbreviate, drawn, timeline_table
from testbed.scenario.timeline import TimelineRow, timeline_rows
from testbed.topology import load

ROOT = Path(__file__).resolve().parents[4]
DEMO = ROOT / "topologies" / "demo.yaml"


def of(scenario: str):
    return load(DEMO, scenario=ROOT / "topologies" / "scenarios" / scenario)


def row(*moments_s: float, lasts_s: float | None = None, when: str | None = None) -> TimelineRow:
    return TimelineRow("cut", "", ("siren",), 1.0, moments_s, lasts_s, when)


def test_repetitions_share_one_row_and_rows_are_in_the_order_of_time():
    rows = timeline_rows(of("bad-hour.yaml"))
    (cut,) = [each for each in rows if each.what == "cut"]
    assert (cut.moments_s, cut.lasts_s) == ((18.0, 22.0, 26.0), 1.0)
    begins = [each.moments_s[0] for each in rows]
    assert begins == sorted(begins)
    assert [each.what for each in rows][-1] == "churn"


def test_values_are_shown_in_the_units_of_the_file():
    description = {each.what: each.description for each in timeline_rows(of("bad-hour.yaml"))}
    assert description["link"] == "rate 64kbit/s down"
    assert description["flap"] == "500ms down, 1.5s up"
    assert description["churn"] == "30/min leave (crash), 60/min join"
    assert description["mark"] == "the ground moves"


def test_triggered_events_come_last_and_name_their_trigger():
    rows = timeline_rows(of("when-received.yaml"))
    assert [each.when is None for each in rows] == [True, True, False, False, False, False, False]
    assert "the overlay is stable for 2 s" in [each.when for each in rows]


def test_a_moment_is_a_dot_and_a_duration_is_a_block():
    assert drawn(row(0.0), 40.0) == "●" + "·" * (WIDTH - 1)
    assert drawn(row(39.9), 40.0) == "·" * (WIDTH - 1) + "●"
    assert drawn(row(10.0, 20.0, lasts_s=2.0), 40.0) == (
        "·" * 10 + "███" + "·" * 7 + "███" + "·" * (WIDTH - 23)
    )


def test_the_table_fits_an_ordinary_terminal():
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(timeline_table(of("bad-hour.yaml"), abbreviate))
    text = console.export_text()
    assert "what happens, in 30s" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_hazard_is_a_row_and_its_failures_another() -> None:
    golden = Path(__file__).resolve().parents[3] / "golden" / "topology" / "expanded"
    whole, failures = timeline_rows(load(golden / "hazard.yaml"))
    assert (whole.what, whole.description, whole.lasts_s) == ("landslide", "4 slopes", 1_800)
    assert failures.what == "landslide: level 5"
    assert failures.nodes == ("slopes-1",)
    assert all(0 < at_s < 1_800 for at_s in failures.moments_s)
