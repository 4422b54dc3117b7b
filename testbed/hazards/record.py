"""A hazard as the run's folder keeps it: what a report needs, of bounded size. Times are the scenario's own seconds."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from testbed.hazards.levels import level_at
from testbed.hazards.model import LEVELS, Hazard, HazardKind
from testbed.hazards.sites import Story, moments

MOST_POINTS = 600  # of each curve
INDEX = {  # what stands for the danger, and its unit
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
    hazard: Hazard, stories: Sequence[Story], duration_s: float, speed: float
) -> dict[str, Any]:
    """Plain JSON values."""
    steps = moments(duration_s, hazard.step_s)
    shown = range(0, len(steps), -(-len(steps) // MOST_POINTS) or 1)
    name, unit = INDEX[hazard.kind]
    return {
        "kind": hazard.kind.value,
        "duration_s": duration_s,
        "speed": speed,
        "sites": len(stories),
        "site": SITES[hazard.kind],
        "sensors": len(hazard.nodes),
        "index": {"name": name, "unit": unit},
        "threshold": _spread([story.threshold for story in stories]),
        "curves": [
            {
                "at_s": steps[step],
                "rain_mm_h": _spread([s.rain_mm_h[step] for s in stories if s.rain_mm_h]),
                "index": _spread([story.index[step] for story in stories]),
            }
            for step in shown
        ],
        "levels": _levels(stories),
        "failures": [
            {
                "at_s": story.failed_s,
                "site": story.site.name,
                "sensors": [*story.site.sensors],
                "threshold": story.threshold,
                "moved_mm": story.moved_mm,
            }
            for story in sorted(stories, key=lambda story: story.failed_s or 0.0)
            if story.failed_s is not None
        ],
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"least": min(values), "median": median(values), "most": max(values)}


def _levels(stories: Sequence[Story]) -> list[dict[str, Any]]:
    """How many sites are at which level, from each moment on at which that changes."""
    changes = sorted({change.at_s for story in stories for change in story.course})
    told: list[dict[str, Any]] = []
    for at_s in changes:
        counted = Counter(level_at(story.course, at_s) for story in stories)
        told.append({"at_s": at_s, "sites": [counted[level] for level in LEVELS]})
    return told
