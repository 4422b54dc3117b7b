"""The report's section on the hazard: a sentence, the chart of rain, index and levels, and the failures."""

import json
from itertools import pairwise
from typing import Any

from analysis.inputs.run_folder import Run
from analysis.report.charts import (
    DASHES,
    LEVELS,
    SMALL_HEIGHT,
    WIDTH,
    Specification,
    by_level,
    layered,
    of_rows,
    specification,
    svg,
)
from analysis.report.drawing import Drawing

# The chart: rain, index and levels over the scenario's own time, one below the other.


NAMES = 110  # pixels for the names of lines
_BESIDE: dict[str, Any] = {"align": "left", "dx": 6, "fontSize": 11}
_SPREAD = (("most", [1, 0]), ("median", [6, 3]), ("least", [2, 3]))  # with their dashes
UPPER = LEVELS[:-1]  # all sites are at level 1 or above


def draw(
    curves: list[dict[str, Any]],
    levels: list[dict[str, Any]],
    failures: list[float],
    texts: dict[str, Any],
    label: str,
) -> Drawing:
    """`curves`: at, rain and index, each with most, median and least; `levels`: at, level, sites; `failures`: times.

    `texts`: titles, the end of time and the threshold; times in the unit that the axis names.
    """
    panels = []
    if any(row["rain"] for row in curves):
        panels.append(_spread(curves, "rain", texts["rain"], None, texts))
    panels.append(_spread(curves, "index", texts["index"], texts["threshold"], texts))
    panels.append(_levels(levels, failures, texts))
    together = {
        "vconcat": panels,
        "spacing": 20,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
    }
    return svg(together, "hazard", label, height=None)


def _time(texts: dict[str, Any], title: str | None = None) -> Any:
    import altair as alt

    return alt.X("at:Q", title=title, scale={"domain": [0, texts["end"]], "nice": False})


def _spread(
    curves: list[dict[str, Any]],
    name: str,
    title: str,
    threshold: float | None,
    texts: dict[str, Any],
) -> Specification:
    """Maximum, median and minimum of all sites; one line if they are equal."""
    import altair as alt

    parts = [
        (part, dash)
        for part, dash in _SPREAD
        if part == "most" or any(row[name][part] != row[name]["most"] for row in curves)
    ]
    rows = [
        {"at": row["at"], "value": row[name][part], "part": part}
        for part, _ in parts
        for row in curves
    ]
    y = alt.Y(
        "value:Q",
        title=None,
        scale={"zero": name == "rain", "nice": True},
        axis={"tickCount": 5},
    )
    drawn = (
        of_rows(rows)
        .mark_line(strokeWidth=2, color="var(--accent)")
        .encode(
            x=_time(texts),
            y=y,
            strokeDash=alt.StrokeDash(
                "part:N",
                scale={
                    "domain": [part for part, _ in parts],
                    "range": [dash for _, dash in parts],
                },
                legend=None,
            ),
        )
    )
    last = curves[-1]
    ends = [{"at": texts["end"], "value": last[name][part], "text": part} for part, _ in parts]
    named = ends if len(parts) > 1 and _apart(ends, rows) else []
    layers = [drawn, _text(named, texts)]
    if threshold is not None:
        rule = of_rows([{"value": threshold}])
        layers.append(
            rule.mark_rule(strokeDash=[5, 4], color="var(--care)").encode(y=alt.Y("value:Q"))
        )
    return layered(*layers, width=WIDTH - NAMES, height=SMALL_HEIGHT, title=title)


def _apart(ends: list[dict[str, Any]], rows: list[dict[str, Any]]) -> bool:
    """Whether the names at the ends of lines do not overlap."""
    values = [row["value"] for row in rows]
    heights = sorted(end["value"] for end in ends)
    space = (max(values) - min(values)) / 8
    return all(later - sooner > space for sooner, later in pairwise(heights))


def _text(rows: list[dict[str, Any]], texts: dict[str, Any]) -> Any:
    import altair as alt

    return (
        of_rows(rows)
        .mark_text(**_BESIDE)
        .encode(x=_time(texts), y=alt.Y("value:Q"), text=alt.Text("text:N"))
    )


def _levels(
    rows: list[dict[str, Any]], failures: list[float], texts: dict[str, Any]
) -> Specification:
    import altair as alt

    y = alt.Y(
        "sites:Q",
        title=None,
        scale={"domain": [0, texts["sites"]], "nice": False},
        axis={"tickCount": 5, "format": "d"},
    )
    lines = (
        of_rows(rows)
        .mark_line(interpolate="step-after", strokeWidth=2.5)
        .encode(
            x=_time(texts, texts["time"]),
            y=y,
            color=by_level(alt.Color, list(UPPER), [f"var(--level-{level})" for level in UPPER]),
            strokeDash=by_level(alt.StrokeDash, list(UPPER), list(DASHES[: len(UPPER)])),
        )
    )
    marks = (
        of_rows([{"at": at} for at in failures])
        .mark_text(text="✕", fontSize=12, baseline="bottom", dy=-2, color="var(--level-5)")
        .encode(x=_time(texts, texts["time"]), y=alt.YValue(0))  # type: ignore[no-untyped-call]
    )
    chart = layered(lines, marks) if failures else specification(lines)
    size = {"width": WIDTH - NAMES, "height": SMALL_HEIGHT * 1.6}
    return {**chart, **size, "title": texts["levels"]}


MINUTES_FROM_S = 300.0  # shorter scenarios are shown in seconds
MOST_SHOWN = 12  # failures in the visible table
LEVEL_4 = 4


def view(run: Run) -> dict[str, Any] | None:
    """The view of the template; None without a hazard."""
    if not run.hazard.exists():
        return None
    hazard = json.loads(run.hazard.read_text())
    unit_s, unit = (60.0, "min") if hazard["duration_s"] >= MINUTES_FROM_S else (1.0, "s")
    failures = [_failure(row, hazard, unit_s, unit) for row in hazard["failures"]]
    return {
        "kind": hazard["kind"],
        "site": hazard["site"],
        "sentence": sentence(hazard, unit_s, unit),
        "speed": hazard["speed"],
        "chart": _chart(hazard, unit_s, unit),
        "failures": failures[:MOST_SHOWN],
        "more_failures": failures[MOST_SHOWN:],
        "index": hazard["index"],
    }


def sentence(hazard: dict[str, Any], unit_s: float = 60.0, unit: str = "min") -> str:
    """A summary in one sentence."""
    sites, site, failures = hazard["sites"], hazard["site"], hazard["failures"]
    last = hazard["levels"][-1]["sites"]
    high = max(sum(row["sites"][LEVEL_4 - 1 :]) for row in hazard["levels"])
    watched = f"{hazard['sensors']} sensors watch {sites} {site}{'s' if sites != 1 else ''}"
    if not failures:
        return f"{watched}. None failed; at most {high} were at level 4 or above at a time."
    first = failures[0]
    failed = "one failed" if len(failures) == 1 else f"{len(failures)} failed"
    return (
        f"{watched}. {failed.capitalize()}, the first ({first['site']}) after "
        f"{first['at_s'] / unit_s:.3g} {unit}; at most {high} were at level 4 or above at a time, "
        f"{sum(last[LEVEL_4 - 1 :])} at the end."
    )


def level_rows(hazard: dict[str, Any], unit_s: float) -> list[dict[str, Any]]:
    """Number of sites at each level or above over time, to the end of the scenario."""
    rows = [*hazard["levels"], {**hazard["levels"][-1], "at_s": hazard["duration_s"]}]
    return [
        {"at": row["at_s"] / unit_s, "level": level, "sites": sum(row["sites"][int(level) - 1 :])}
        for level in UPPER
        for row in rows
    ]


def _chart(hazard: dict[str, Any], unit_s: float, unit: str) -> Drawing:
    curves = [
        {"at": row["at_s"] / unit_s, "rain": row["rain_mm_h"], "index": row["index"]}
        for row in hazard["curves"]
    ]
    index, speed = hazard["index"], hazard["speed"]
    paced = "" if speed == 1 else f", played {speed:g} times as fast"
    in_unit = f", {index['unit']}" if index["unit"] else ""
    texts = {
        "rain": "rain, mm/h",
        "index": f"{index['name']}{in_unit}; horizontal dashes: threshold of level 4 for the median {hazard['site']}",
        "levels": f"{hazard['site']}s at each level or above; ✕: one fails",
        "time": f"{'minutes' if unit == 'min' else 'seconds'} of the scenario{paced}",
        "threshold": hazard["threshold"]["median"] if hazard["threshold"] else None,
        "end": hazard["duration_s"] / unit_s,
        "sites": hazard["sites"],
    }
    label = f"Rain, {index['name']} and warning levels over time. {sentence(hazard, unit_s, unit)}"
    failed = [row["at_s"] / unit_s for row in hazard["failures"]]
    return draw(curves, level_rows(hazard, unit_s), failed, texts, label)


def _failure(
    row: dict[str, Any], hazard: dict[str, Any], unit_s: float, unit: str
) -> dict[str, str]:
    moved = row["moved_mm"]
    return {
        "when": f"{row['at_s'] / unit_s:.1f} {unit}",
        "played": f"{row['at_s'] / hazard['speed']:.1f} s",
        "site": row["site"],
        "sensors": ", ".join(row["sensors"]),
        "threshold": f"{row['threshold']:.3g} {hazard['index']['unit']}".strip(),
        "moved": "–" if moved is None else f"{moved:.2g} mm",
    }
