"""How much later than the earliest ones acknowledgements come, though the line is as fast as ever.

On a busy line acknowledgements follow each other at its rate. A line that becomes slower makes them later and later,
one that becomes faster earlier and earlier. Only jitter makes them later for a while: what counts is how high lateness
rises and how deep it falls again, the smaller of both.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice

LOOKED_BACK, GRAINS = 2.0, 8  # jitters; parts of one in which acknowledgements are one
LEAST = 8  # acknowledgements to look back at
REMEMBERED, TELLING, USUAL = 64, 6, 0.9  # nine of ten were at most so high
TIMES = 1.5  # seldom is it the latest there can be between two of the earliest

Point = tuple[float, float]  # bytes acknowledged in all, when


@dataclass(slots=True)
class _Grain:
    """Acknowledgements of about the same time."""

    at: float
    least: Point  # the least late
    most: Point


class Jitter:
    """What to forgive."""

    def __init__(self) -> None:
        self.span_s = 0.0
        self._grains: deque[_Grain] = deque()
        self._bumps: deque[float] = deque(maxlen=REMEMBERED)

    def on_pause(self) -> None:
        """The line had nothing to do: what comes cannot be compared with what was."""
        self._grains.clear()

    def on_acknowledged(self, position: float, earliest: float, latest: float, rate: float) -> None:
        """So many bytes in all are acknowledged since some moment between these two."""

        def late(point: Point) -> float:
            return point[1] - point[0] / rate

        least, most = (position, latest), (position, earliest)
        new = not self._grains or latest - self._grains[-1].at >= self.span_s / GRAINS
        if new:
            self._grains.append(_Grain(latest, least, most))
        else:
            last = self._grains[-1]
            last.least = min(last.least, least, key=late)
            last.most = max(last.most, most, key=late)
        while len(self._grains) > LEAST and self._grains[0].at < latest - LOOKED_BACK * self.span_s:
            self._grains.popleft()
        mosts = [late(grain.most) for grain in self._grains]
        top = mosts.index(max(mosts))
        risen_from = min(
            (late(grain.least) for grain in islice(self._grains, top)), default=mosts[top]
        )
        self._remember(max(0.0, mosts[top] - max(risen_from, late(least))), new)

    def _remember(self, bump: float, new: bool) -> None:
        if new or not self._bumps:
            self._bumps.append(bump)
        else:
            self._bumps[-1] = max(self._bumps[-1], bump)
        if len(self._bumps) >= TELLING:
            self.span_s = TIMES * sorted(self._bumps)[int(USUAL * len(self._bumps))]
