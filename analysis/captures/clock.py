"""A node's own clock, from what was measured of it: its times in the lab's time, and how far they may be off.

`analysis.inputs.clocks` reads the measurements and says how the error is made up.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
RATE = 50e-6  # how wrong the rate of a board's clock may be; crystals of boards promise about 20 to 50 ppm
TOGETHER_NS = 5_000_000_000  # measurements within this time are of one moment
# Bounds are read where the corrected time is, not where the true one is, and times are whole numbers.
MARGIN, GRAIN_NS = 1.0005, 2


class Measurement(NamedTuple):
    """One line of the file."""

    t_ns: int
    offset_ns: int
    error_ns: int
    when: str


@dataclass(frozen=True, slots=True)
class Clock:
    """One node's clock: at `at_ns` of the lab's time it was `offset_ns` ahead, give or take `error_ns`."""

    node: str
    measured: tuple[Measurement, ...]  # all, in the order of time
    at_ns: Array
    offset_ns: Array
    error_ns: Array
    jumps_ns: Array  # between neighbours: how far it may have been from the line because it was set; 0 if it was not
    set_back_ns: int  # it was set back so far that its times are ambiguous: then all of them are off by up to this

    def to_lab_ns(self, own_ns: Array) -> Array:
        """Times of this clock as those of the lab machine's."""
        own: Array = np.asarray(own_ns, np.int64)
        knots = self.at_ns + self.offset_ns  # what this clock showed then
        order = np.argsort(knots, kind="stable")
        first, base = int(knots[order[0]]), int(self.offset_ns[0])
        moved = np.interp(
            (own - first).astype(float),
            (knots[order] - first).astype(float),
            (self.offset_ns[order] - base).astype(float),
        )
        to_lab_ns: Array = own - base - np.rint(moved).astype(np.int64)
        return to_lab_ns

    def offset_at(self, lab_ns: Array) -> Array:
        """How far ahead it was at these times of the lab's, in ns."""
        at, knots = self._since_first(lab_ns)
        base = int(self.offset_ns[0])
        offset: Array = base + np.interp(at, knots, (self.offset_ns - base).astype(float))
        return offset

    def error_at(self, lab_ns: Array) -> Array:
        """How far times of this clock may be off, when they are taken home, at these times of the lab's; in ns."""
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
        """Times and measurements as distances from the first, which numbers with a point can hold."""
        first = int(self.at_ns[0])
        at = (np.asarray(lab_ns, np.int64) - first).astype(float)
        return at, (self.at_ns - first).astype(float)

    @property
    def drift(self) -> tuple[float, float] | None:
        """By how much its rate is wrong from the first to the last measurement, and the error of that; 1e-6: 1 ppm."""
        span = int(self.at_ns[-1] - self.at_ns[0])
        if not span:
            return None
        error = int(self.error_ns[0] + self.error_ns[-1])
        return int(self.offset_ns[-1] - self.offset_ns[0]) / span, error / span

    @property
    def was_set(self) -> bool:
        """Whether no clock of the rate that is allowed for can have done what was measured."""
        return bool(self.set_back_ns or self.jumps_ns.any())


def clock_of(node: str, measured: Iterable[Measurement]) -> Clock:
    """From at least one measurement, in any order."""
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
    """Those that are of one moment together: none is more than TOGETHER_NS after the first of them."""
    groups: list[list[Measurement]] = []
    for one in measured:
        if groups and one.t_ns - groups[-1][0].t_ns <= TOGETHER_NS:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _best(group: list[Measurement]) -> tuple[int, int, int]:
    """The one with the least error; if others contradict it, its error is as large as that takes."""
    best = min(group, key=lambda one: (one.error_ns, one.t_ns))
    apart = [
        abs(one.offset_ns - best.offset_ns) - one.error_ns - int(RATE * abs(one.t_ns - best.t_ns))
        for one in group
    ]
    return best.t_ns, best.offset_ns, max(best.error_ns, *apart)
