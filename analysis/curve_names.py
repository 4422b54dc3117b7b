"""Where to write the name of each curve of a chart, so that it stands beside its own curve and on no other. Pure."""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

HEIGHTS = tuple(number / 40 for number in range(2, 39))  # shares at which a name may stand
HALF = 0.03  # half the height of a name, as a share
APART = 0.07  # names are at least so far above each other

Curve = list[tuple[float, float]]  # share reached, delay; both rising


def label_spots(rows: Sequence[dict[str, Any]], wide_range: float) -> list[dict[str, Any]]:
    """For each level a spot: delay_s, share, text; the most urgent level has the first choice.

    Names are written to the right of their spot: it is where the next curve on the right is farthest.
    """
    curves: dict[str, Curve] = {}
    for row in rows:
        curves.setdefault(row["level"], []).append((row["share"], row["delay_s"]))
    delays = [row["delay_s"] for row in rows]
    at: Callable[[float], float] = math.log10 if wide(delays, wide_range) else float
    end = at(max(delays)) if delays else 0.0
    spots: list[dict[str, Any]] = []
    for level in sorted(curves, reverse=True):
        others = [curve for name, curve in curves.items() if name != level]
        free = [h for h in HEIGHTS if all(abs(h - spot["share"]) >= APART for spot in spots)]
        reached = [h for h in free if h <= curves[level][-1][0]] or [curves[level][-1][0]]
        best = max(reached, key=lambda height: _room(curves[level], others, height, at, end))
        spots.append(
            {"delay_s": _when(curves[level], best), "share": best, "text": f"level {level}"}
        )
    return spots


def wide(delays: Sequence[float], wide_range: float) -> bool:
    """Whether delays are so different that their axis is logarithmic; those of 0 do not count."""
    known = [delay for delay in delays if delay > 0]
    return bool(known) and max(known) / min(known) > wide_range


def _room(
    curve: Curve, others: list[Curve], height: float, at: Callable[[float], float], end: float
) -> float:
    """How far to the right of the curve nothing else is, around this height."""
    own = at(_when(curve, height))
    ends = [end, at(_when(curve, height + HALF))]
    for other in others:
        low, high = (at(_when(other, share)) for share in (height - HALF, height + HALF))
        if low <= own <= high:
            return 0.0
        ends.append(low)
    return min((spot - own for spot in ends if spot > own), default=0.0)


def _when(curve: Curve, share: float) -> float:
    """The delay at which the curve reaches this share, or its end."""
    return curve[min(bisect_left(curve, (share, -math.inf)), len(curve) - 1)][1]
