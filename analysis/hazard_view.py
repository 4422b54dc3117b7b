"""The report's part on the hazard: a sentence, the chart of rain, index and levels, and who failed when."""

import json
from typing import Any

from markupsafe import Markup

from analysis import hazard_chart
from analysis.runfolder import Run

MINUTES_FROM_S = 300.0  # shorter scenarios are told in seconds
MOST_SHOWN = 12  # failures in the table that stands open
LEVEL_4 = 4


def view(run: Run) -> dict[str, Any] | None:
    """None if the scenario had no hazard."""
    if not run.hazard.exists():
        return None
    told = json.loads(run.hazard.read_text())
    unit_s, unit = (60.0, "min") if told["duration_s"] >= MINUTES_FROM_S else (1.0, "s")
    failures = [_failure(row, told, unit_s, unit) for row in told["failures"]]
    return {
        "kind": told["kind"],
        "site": told["site"],
        "sentence": sentence(told, unit_s, unit),
        "speed": told["speed"],
        "chart": Markup(_chart(told, unit_s, unit)),
        "failures": failures[:MOST_SHOWN],
        "more_failures": failures[MOST_SHOWN:],
        "index": told["index"],
    }


def sentence(told: dict[str, Any], unit_s: float = 60.0, unit: str = "min") -> str:
    """What happened to how many."""
    sites, site, failures = told["sites"], told["site"], told["failures"]
    last = told["levels"][-1]["sites"]
    high = max(sum(row["sites"][LEVEL_4 - 1 :]) for row in told["levels"])
    watched = f"{told['sensors']} sensors watch {sites} {site}{'s' if sites != 1 else ''}"
    if not failures:
        return f"{watched}. None failed; at most {high} were at level 4 or above at a time."
    first = failures[0]
    many = "one failed" if len(failures) == 1 else f"{len(failures)} failed"
    return (
        f"{watched}. {many.capitalize()}, the first ({first['site']}) after "
        f"{first['at_s'] / unit_s:.3g} {unit}; at most {high} were at level 4 or above at a time, "
        f"{sum(last[LEVEL_4 - 1 :])} at the end."
    )


def level_rows(told: dict[str, Any], unit_s: float) -> list[dict[str, Any]]:
    """How many sites are at each level or above, from when on; drawn to the end."""
    rows = [*told["levels"], {**told["levels"][-1], "at_s": told["duration_s"]}]
    return [
        {"at": row["at_s"] / unit_s, "level": level, "sites": sum(row["sites"][int(level) - 1 :])}
        for level in hazard_chart.UPPER
        for row in rows
    ]


def _chart(told: dict[str, Any], unit_s: float, unit: str) -> str:
    curves = [
        {"at": row["at_s"] / unit_s, "rain": row["rain_mm_h"], "index": row["index"]}
        for row in told["curves"]
    ]
    index, speed = told["index"], told["speed"]
    paced = "" if speed == 1 else f", played {speed:g} times as fast"
    in_unit = f", {index['unit']}" if index["unit"] else ""
    words = {
        "rain": "rain, mm/h",
        "index": f"{index['name']}{in_unit}; dashed across: where level 4 begins for the median {told['site']}",
        "levels": f"{told['site']}s at each level or above; ✕: one fails",
        "time": f"{'minutes' if unit == 'min' else 'seconds'} of the scenario{paced}",
        "threshold": told["threshold"]["median"] if told["threshold"] else None,
        "end": told["duration_s"] / unit_s,
        "sites": told["sites"],
    }
    label = f"Rain, {index['name']} and warning levels over time. {sentence(told, unit_s, unit)}"
    failed = [row["at_s"] / unit_s for row in told["failures"]]
    return hazard_chart.draw(curves, level_rows(told, unit_s), failed, words, label)


def _failure(row: dict[str, Any], told: dict[str, Any], unit_s: float, unit: str) -> dict[str, str]:
    moved = row["moved_mm"]
    return {
        "when": f"{row['at_s'] / unit_s:.1f} {unit}",
        "played": f"{row['at_s'] / told['speed']:.1f} s",
        "site": row["site"],
        "sensors": ", ".join(row["sensors"]),
        "threshold": f"{row['threshold']:.3g} {told['index']['unit']}".strip(),
        "moved": "–" if moved is None else f"{moved:.2g} mm",
    }
