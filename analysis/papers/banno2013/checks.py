"""What must be true of a reproduction of Banno 2013, each as one sentence with the numbers behind it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.papers.banno2013.figures import SCRIBE, SG
from analysis.papers.judging import NOT_MEASURED, all_hold, check

Row = Mapping[str, Any]
ALIKE = 0.1  # of the path
CLEARLY, HARDLY = 0.3, 0.1  # correlation
RARE = 0.2


def checks(topics: Sequence[Row], totals: Sequence[Row]) -> list[dict[str, Any]]:
    """Name, whether it holds (null: not measured here), and the numbers."""
    return [
        _relay_free(topics),
        _correlation(totals, SG, f"correlate clearly in SG-TBPS (at least {CLEARLY})"),
        _correlation(totals, SCRIBE, f"hardly correlate in Scribe (at most {HARDLY})"),
        _leaves(totals),
    ]


def _relay_free(rows: Sequence[Row]) -> dict[str, Any]:
    """Only a topic's own nodes forward it, so how many others there are does not matter."""
    paths: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["method"] == SG:
            found = paths.setdefault((row["pattern"], row["strategy"]), {})
            found[row["nodes"]] = row["path"]["mean"]
    changes = [
        (max(found.values()) / min(found.values()) - 1, f"pattern {pattern}, {strategy}")
        for (pattern, strategy), found in paths.items()
        if len(found) > 1
    ]
    name = "SG-TBPS's paths do not depend on the size of the overlay (at most 10 % apart)"
    return all_hold(name, changes, lambda change: change <= ALIKE)


def _correlation(rows: Sequence[Row], method: str, words: str) -> dict[str, Any]:
    name = f"received and forwarded {words}"
    own = [row["correlation"]["mean"] for row in rows if row["method"] == method]
    if not own:
        return check(name, None, NOT_MEASURED)
    value = own[0]
    return check(name, value >= CLEARLY if method == SG else abs(value) <= HARDLY, f"{value:.2f}")


def _leaves(rows: Sequence[Row]) -> dict[str, Any]:
    """The paper has them in SG-TBPS only. Here a few nodes lie on nobody's way to a root, either."""
    name = (
        f"nodes that forward nothing are common in SG-TBPS, and in Scribe at most {RARE} x as many"
    )
    idle = {row["method"]: row["without_forwards"]["mean"] for row in rows}
    if not {SG, SCRIBE} <= set(idle):
        return check(name, None, NOT_MEASURED)
    found = f"SG-TBPS {idle[SG]:,.0f}, Scribe {idle[SCRIBE]:,.0f}"
    return check(name, idle[SG] > 0 and idle[SCRIBE] <= RARE * idle[SG], found)
