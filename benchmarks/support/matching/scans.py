"""The index's peers: looking at every box, in plain Python and with numpy."""

from collections.abc import Callable

import numpy as np

from benchmarks.support.matching.workloads import Workload
from nodes.overlay.zorder_map.curve import Point

Match = Callable[[Point], list[int]]


def plain_scan(workload: Workload) -> Match:
    """All corners of a box in one tuple: of what was tried, Python is fastest at this."""
    if workload.low.shape[1] != 2:
        return _any_dimensions(workload)
    sides = np.stack([workload.low, workload.high], axis=2).reshape(len(workload.low), -1)
    rows = [(*corners, who) for who, corners in enumerate(sides.tolist())]

    def match(point: Point) -> list[int]:
        x, y = point
        return [who for a, b, c, d, who in rows if a <= x <= b and c <= y <= d]

    return match


def _any_dimensions(workload: Workload) -> Match:
    boxes = list(enumerate(workload.boxes()))
    return lambda point: [who for who, box in boxes if box.contains(point)]


def numpy_scan(workload: Workload) -> Match:
    """A column for each side; a dimension is compared only for those that the ones before have left."""
    sides = [
        (np.ascontiguousarray(low), np.ascontiguousarray(high))
        for low, high in zip(workload.low.T, workload.high.T, strict=True)
    ]

    def match(point: Point) -> list[int]:
        (low, high), *others = sides
        left = np.flatnonzero((low <= point[0]) & (point[0] <= high))
        for (low, high), coordinate in zip(others, point[1:], strict=True):
            left = left[(low[left] <= coordinate) & (coordinate <= high[left])]
        found: list[int] = left.tolist()
        return found

    return match
