"""The hazard in the report: a sentence, a chart and rows from the run folder."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analysis.inputs.run_folder import Run
from analysis.report.sections import hazard as sections_hazard
from testbed.hazards.kinds import site_histories
from testbed.hazards.model import Hazard, HazardKind, Quake, Rain
from testbed.hazards.record import record

PLACES = {"a": (33.5, 133.5), "b": (33.51, 133.5), "c": (33.9, 133.5), "d": (33.5, 133.5)}


def hazard_json(hazard: Hazard, duration_s: float = 3_600.0) -> dict[str, Any]:
    made = record(hazard, site_histories(hazard, PLACES, duration_s, 3), duration_s, 20.0)
    return dict(json.loads(json.dumps(made)))


def landslide(rate: float) -> Hazard:
    return Hazard(HazardKind.LANDSLIDE, tuple(PLACES), Rain(((0.0, rate),), None, 150.0))


def view(folder: Path, written: dict[str, Any]) -> dict[str, Any]:
    (folder / "hazard.json").write_text(json.dumps(written))
    seen = sections_hazard.view(Run(folder, {}, ()))
    assert seen is not None
    return seen


def test_a_run_without_a_hazard_has_no_part_on_it(tmp_path: Path) -> None:
    assert sections_hazard.view(Run(tmp_path, {}, ())) is None


def test_a_storm_has_a_sentence_a_chart_and_a_table(tmp_path: Path) -> None:
    seen = view(tmp_path, hazard_json(landslide(150.0)))
    assert seen["sentence"].startswith("4 sensors watch 3 slopes. 3 failed, the first (")
    assert "rain, mm/h" in str(seen["chart"])
    assert "soil water index, mm" in str(seen["chart"])
    assert "minutes of the scenario, played 20 times as fast" in str(seen["chart"])
    assert len(re.findall(r">✕</text>", str(seen["chart"]))) == 3
    at = [float(row["when"].removesuffix(" min")) for row in seen["failures"]]
    assert at == sorted(at)
    assert [row["sensors"] for row in seen["failures"] if row["site"] == "a"] == ["a, d"]


def test_no_site_fails_in_a_drizzle(tmp_path: Path) -> None:
    seen = view(tmp_path, hazard_json(landslide(0.0)))
    assert seen["failures"] == []
    assert "None failed; at most" in seen["sentence"]


def test_an_earthquake_has_no_rain_and_is_shown_in_seconds(tmp_path: Path) -> None:
    quake = Hazard(
        HazardKind.EARTHQUAKE, tuple(PLACES), quake=Quake((33.4, 133.5), 8.0, 5.0), step_s=1.0
    )
    seen = view(tmp_path, hazard_json(quake, 60.0))
    assert "rain, mm/h" not in str(seen["chart"])
    assert "seconds of the scenario" in str(seen["chart"])
    assert all(row["moved"] == "–" for row in seen["failures"])


@pytest.mark.parametrize("rate", [0.0, 60.0, 150.0])
def test_lines_of_levels_lie_above_each_other_and_begin_and_end_with_the_scenario(
    rate: float,
) -> None:
    written = hazard_json(landslide(rate))
    rows = sections_hazard.level_rows(written, 60.0)
    by_level = {level: [row for row in rows if row["level"] == level] for level in "5432"}
    for higher, lower in (("5", "4"), ("4", "3"), ("3", "2")):
        pairs = zip(by_level[higher], by_level[lower], strict=True)
        assert all(above["sites"] <= below["sites"] <= 3 for above, below in pairs)
    for line in by_level.values():
        assert (line[0]["at"], line[-1]["at"]) == (0.0, 60.0)


def test_levels_differ_by_their_dashes_and_follow_the_readers_colours(tmp_path: Path) -> None:
    chart = str(view(tmp_path, hazard_json(landslide(150.0)))["chart"])
    dashes = set(
        re.findall(
            r'stroke="var\(--level-\d\)" stroke-width="2.5" stroke-dasharray="([^"]+)"', chart
        )
    )
    assert len(dashes) >= 4
    assert not re.findall(r'(?:fill|stroke)="#', chart)
