"""Routing tables that adapt: they take in whoever they hear of and let the least useful entry go (Kita 2025, 5.4).

FRT's idea: tables are ordered by a total order, and when a table has grown too large, that entry goes without which
the best table is left. Of two tables the better one is decided by the first of these that differs:

0. PATM-TBPS only: more subscribers of topics of high priority that the node publishes (the thesis prints the opposite
   sign, against its own text);
1. a higher top level, then fewer empty levels below it (an entry's level: how many bits it shares with the table's
   node);
2. more subscribers of the node's own topics;
3. fewer levels that are tied for having the most entries;
4. the most filled level is a higher one (of several that are tied, the highest);
5. closer keys, on the right side and then on the left: entry by entry in order of distance; none is farther than any.

The neighbours of each level are sticky: they never go, whatever the order says, since routing would break.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FREE = -1


@dataclass(frozen=True, slots=True)
class Heard:
    """Whom some nodes have heard of, in this order: `[table, entry]`. Sticky entries come first."""

    there: NDArray[np.bool_]  # false: this table has fewer entries than the longest
    level: NDArray[np.int64]
    sticky: NDArray[np.bool_]
    subscribes: NDArray[np.bool_]  # to a topic of the table's node
    urgent: NDArray[np.bool_]  # of high priority, and published by it; all false for ATM-TBPS
    distance: NDArray[
        np.int64
    ]  # of its key: positive to the right, negative to the left, all different


def adapted(heard: Heard, size: int) -> NDArray[np.bool_]:
    """Who is still in the tables of `size` when all have been heard: `[table, entry]`. All tables at once."""
    tables, entries = heard.there.shape
    every = np.arange(tables)
    most_sticky = int((heard.there & heard.sticky).sum(axis=1).max())
    slots = np.full((tables, max(size, most_sticky) + 1), _FREE)
    free = np.zeros(tables, dtype=np.int64)  # a slot of each table
    counts = np.zeros((tables, heard.level.max() + 1), dtype=np.int64)  # of entries on each level
    for entry in range(entries):
        come = every[heard.there[:, entry]]
        slots[come, free[come]] = entry
        counts[come, heard.level[come, entry]] += 1
        used = (slots[come] != _FREE).sum(axis=1)
        free[come] = used
        full = come[(used > size) & ~heard.sticky[come, entry]]
        if full.size:
            worst = _worst(heard, full, slots[full], counts[full])
            counts[full, heard.level[full, slots[full, worst]]] -= 1
            slots[full, worst] = _FREE
            free[full] = worst
    held = np.zeros((tables, entries), dtype=bool)
    table, slot = np.nonzero(slots != _FREE)
    held[table, slots[table, slot]] = True
    return held


def _worst(
    heard: Heard, tables: NDArray[np.int64], slots: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The slot of each of these tables without whose entry the table is best."""
    of = tables[:, None], slots
    candidates = (slots != _FREE) & ~heard.sticky[of]
    top, empty, tied, fullest = (
        np.take_along_axis(value, heard.level[of], axis=1) for value in _without(counts)
    )
    distance = heard.distance[of]
    left_first = np.where(distance < 0, np.abs(distance).max() + 1 - distance, distance)
    better = (~heard.urgent[of], top, -empty, ~heard.subscribes[of], -tied, fullest, left_first)
    for value in better:
        left = np.where(candidates, value.astype(np.int64), np.iinfo(np.int64).min)
        candidates &= left == left.max(axis=1, keepdims=True)
    worst: NDArray[np.int64] = candidates.argmax(axis=1)
    return worst


def _without(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """With one entry less on a level, `[table, level]`: top level, empty levels, fullest levels, the highest."""
    levels = counts.shape[1]
    fewer = counts[:, None, :] - np.eye(levels, dtype=np.int64)
    used = fewer > 0
    top = _highest(used)
    empty = (~used & (np.arange(levels) <= top[..., None])).sum(axis=-1)
    most = fewer == fewer.max(axis=-1, keepdims=True)
    return top, empty, most.sum(axis=-1), _highest(most)


def _highest(of_levels: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The highest level that is true, on the last axis."""
    below_top = of_levels[..., ::-1].argmax(axis=-1)
    highest: NDArray[np.int64] = of_levels.shape[-1] - 1 - below_top
    return highest
