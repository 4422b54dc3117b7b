"""The record of a hazard in the run's folder, for the report; of bounded size. Times are the scenario's own seconds."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from testbed.hazards.levels import level_at
from testbed.hazards.model import LEVELS, Hazard, HazardKind
from testbed.hazards.sites import SiteHistory, moments

MOST_POINTS = 600  # of each curve
INDEX = {  # the index of the danger, and its unit
    HazardKind.LANDSLIDE: ("soil water index", "mm"),
    HazardKind.FLOOD: ("water level", "m"),
    HazardKind.EARTHQUAKE: ("seismic intensity (JMA)", ""),
}
SITES = {
    HazardKind.LANDSLIDE: "slope",
    HazardKind.FLOOD: "gauge",
    HazardKind.EARTHQUAKE: "site",
}


def record(
    hazard: Hazard, histories: Sequence[SiteHistory], duration_s: float, speed: float
) -> dict[str, Any]:
    """The record as plain JSON values."""
    steps = moments(duration_s, hazard.step_s)
    shown = range(0, len(steps), -(-len(steps) // MOST_POINTS) or 1)
    name, unit = INDEX[hazard.kind]
    return {
        "kind": hazard.kind.value,
        "duration_s": duration_s,
        "speed": speed,
        "sites": len(histories),
        "site": SITES[hazard.kind],
        "sensors": len(hazard.nodes),
        "index": {"name": name, "unit": unit},
        "threshold": _spread([history.threshold for history in histories]),
        "curves": [
            {
                "at_s": steps[step],
                "rain_mm_h": _spread([s.rain_mm_h[step] for s in histories if s.rain_mm_h]),
                "index": _spread([history.index[step] for history in histories]),
            }
            for step in shown
        ],
        "levels": _levels(histories),
        "failures": [
            {
                "at_s": history.failed_s,
                "site": history.site.name,
                "sensors": [*history.site.sensors],
                "threshold": history.threshold,
                "moved_mm": history.moved_mm,
            }
            for history in sorted(histories, key=lambda history: history.failed_s or 0.0)
            if history.failed_s is not None
        ],
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"least": min(values), "median": median(values), "most": max(values)}


def _levels(histories: Sequence[SiteHistory]) -> list[dict[str, Any]]:
    """The number of sites at each level, at each moment at which it changes."""
    changes = sorted({change.at_s for history in histories for change in history.course})
    rows: list[dict[str, Any]] = []
    for at_s in changes:
        counted = Counter(level_at(history.course, at_s) for history in histories)
        rows.append({"at_s": at_s, "sites": [counted[level] for level in LEVELS]})
    return rows
