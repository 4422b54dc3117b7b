"""Converts a node's own clock to the lab's time, with a bound for the error, from measurements of that clock.

`analysis.inputs.clocks` reads the measurements and explains the error.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RATE = 50e-6  # largest rate error of a board's clock; crystals are specified for about 20 to 50 ppm
TOGETHER_NS = 5_000_000_000  # measurements within this time count as one moment
# Bounds are evaluated at the corrected time, not at the true one, and times are whole numbers.
MARGIN, GRAIN_NS = 1.0005, 2


class Measurement(NamedTuple):
    """One line of `clocks.jsonl`."""

    t_ns: int
    offset_ns: int
    error_ns: int
    when: str


@dataclass(frozen=True, slots=True)
class Clock:
    """One node's clock: at `at_ns` of the lab's time it was `offset_ns` ahead, with an error of up to `error_ns`."""

    node: str
    measured: tuple[Measurement, ...]  # all, in the order of time
    at_ns: Array
    offset_ns: Array
    error_ns: Array
    jumps_ns: Array  # between measurements: how far it may have been off because it was set; 0 if it was not
    set_back_ns: (
        int  # if it was set back so far that its times are ambiguous, all times may be off by this
    )

    def to_lab_ns(self, own_ns: Array) -> Array:
        """Convert times of this clock to times of the lab machine's clock."""
        own: Array = np.asarray(own_ns, np.int64)
        knots = self.at_ns + self.offset_ns  # what this clock showed then
        order = np.argsort(knots, kind="stable")
        first, base = int(knots[order[0]]), int(self.offset_ns[0])
        moved = np.interp(
            (own - first).astype(float),
            (knots[order] - first).astype(float),
            (self.offset_ns[order] - base).astype(float),
        )
        lab_ns: Array = own - base - np.rint(moved).astype(np.int64)
        return lab_ns

    def offset_at(self, lab_ns: Array) -> Array:
        """How far ahead this clock was at these times of the lab, in ns."""
        at, knots = self._since_first(lab_ns)
        base = int(self.offset_ns[0])
        offset: Array = base + np.interp(at, knots, (self.offset_ns - base).astype(float))
        return offset

    def error_at(self, lab_ns: Array) -> Array:
        """How far converted times of this clock may be off at these times of the lab, in ns."""
        at, knots = self._since_first(lab_ns)
        measured = np.interp(at, knots, self.error_ns.astype(float))
        after = np.clip(np.searchsorted(knots, at, "right"), 1, max(1, len(knots) - 1))
        inside = (at > knots[0]) & (at < knots[-1])
        outside = RATE * np.maximum(np.maximum(knots[0] - at, at - knots[-1]), 0.0)
        if len(knots) > 1:
            a, b = at - knots[after - 1], knots[after] - at
            strayed = np.where(
                inside, 2 * RATE * a * b / (knots[after] - knots[after - 1]), outside
            )
            jumped = np.where(inside, self.jumps_ns[after - 1], 0)
        else:
            strayed, jumped = outside, np.zeros(len(at))
        bound: Array = np.maximum(np.maximum(measured + strayed, jumped), self.set_back_ns)
        return bound * MARGIN + GRAIN_NS

    def _since_first(self, lab_ns: Array) -> tuple[Array, Array]:
        """Times and measurements relative to the first measurement, so that floats represent them exactly enough."""
        first = int(self.at_ns[0])
        at = (np.asarray(lab_ns, np.int64) - first).astype(float)
        return at, (self.at_ns - first).astype(float)

    @property
    def drift(self) -> tuple[float, float] | None:
        """Rate error from the first to the last measurement, and the error of that; 1e-6 is 1 ppm."""
        span = int(self.at_ns[-1] - self.at_ns[0])
        if not span:
            return None
        error = int(self.error_ns[0] + self.error_ns[-1])
        return int(self.offset_ns[-1] - self.offset_ns[0]) / span, error / span

    @property
    def was_set(self) -> bool:
        """Whether the measurements exceed what a clock within RATE can do, so that it must have been set."""
        return bool(self.set_back_ns or self.jumps_ns.any())


def clock_of(node: str, measured: Iterable[Measurement]) -> Clock:
    """Build a clock from at least one measurement; the order does not matter."""
    every = tuple(sorted(measured))
    best = [_best(group) for group in _moments(every)]
    at, offset, error = (np.array(column, np.int64) for column in zip(*best, strict=True))
    gap, step = np.diff(at), np.abs(np.diff(offset))
    between = error[:-1] + error[1:] + np.ceil(RATE * gap).astype(np.int64)
    jumps = np.where(step > between, step + between, 0)
    back = bool((np.diff(at + offset) <= 0).any())
    widest = int(offset.max() - offset.min() + 2 * error.max() + RATE * (at[-1] - at[0]))
    return Clock(node, every, at, offset, error, jumps, widest if back else 0)


def _moments(measured: tuple[Measurement, ...]) -> list[list[Measurement]]:
    """Group measurements into moments: none is more than TOGETHER_NS after the first of its group."""
    groups: list[list[Measurement]] = []
    for one in measured:
        if groups and one.t_ns - groups[-1][0].t_ns <= TOGETHER_NS:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _best(group: list[Measurement]) -> tuple[int, int, int]:
    """The measurement with the least error; if others contradict it, its error grows until they agree."""
    best = min(group, key=lambda one: (one.error_ns, one.t_ns))
    apart = [
        abs(one.offset_ns - best.offset_ns) - one.error_ns - int(RATE * abs(one.t_ns - best.t_ns))
        for one in group
    ]
    return best.t_ns, best.offset_ns, max(best.error_ns, *apart)
