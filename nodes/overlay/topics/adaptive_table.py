"""A routing table that adapts: it takes in whoever is heard of and lets the least useful entry go (Kita 2025, 5.4).

FRT's idea: tables are ordered by a total order, and when one has grown too large, that entry goes without which the
best table is left. Of two tables the better one is decided by the first of these that differs:

0. PATM-TBPS only: more urgent entries, subscribers of topics of high priority that the node publishes (the thesis
   prints the opposite sign, against its own text);
1. a higher top level, then fewer empty levels below it (an entry's level: how many bits it shares with the table's
   node);
2. more subscribers of the node's own topics;
3. fewer levels that are tied for having the most entries;
4. the most filled level is a higher one (of several that are tied, the highest);
5. closer keys, on the right side and then on the left: entry by entry in order of distance; none is farther than any.

The node's neighbours in the Skip Graph are sticky: they never go, since routing would break; with more of them than the
table has room for it is larger, and holds nobody else.

Tables are not compared as wholes: what is left without an entry differs by what it was alone (0, 2), by its level
(1, 3, 4), or by its key (5). So a newcomer costs one look at each entry and at each level.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Name = bytes | int  # what an entry is told by: a key or a node


@dataclass(frozen=True, slots=True)
class Entry:
    """Somebody who was heard of, and what he is to the table's node."""

    name: Name
    key: bytes
    level: int
    sticky: bool = False
    subscribes: bool = False
    urgent: bool = False


class _Left(NamedTuple):
    """The levels of a table as they are without one entry; the larger, the better."""

    top: int
    filled: int  # minus the empty levels
    single: int  # minus the levels that are tied for the most entries
    fullest: int


class AdaptiveTable:
    """At most `size` entries, as seen from the key `own`."""

    def __init__(self, own: bytes, size: int) -> None:
        if size < 1:
            raise ValueError(f"table_size {size}; a table has 1 entry or more")
        self.own = own
        self._size = size
        self._entries: dict[Name, Entry] = {}
        self._levels: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __contains__(self, name: Name) -> bool:
        return name in self._entries

    def take(self, entry: Entry) -> list[Name]:
        """Take in an entry, or what is new about it; who had to go for it, perhaps itself."""
        self.discard(entry.name)
        self._entries[entry.name] = entry
        self._levels[entry.level] += 1
        gone: list[Name] = []
        while len(self) > self._size and (worst := self._worst()) is not None:
            self.discard(worst)
            gone.append(worst)
        return gone

    def discard(self, name: Name) -> None:
        """He is no more, if he was there."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._levels[entry.level] -= 1
            if not self._levels[entry.level]:
                del self._levels[entry.level]

    def _worst(self) -> Name | None:
        """Without whom the table is best; None: all are sticky."""
        loose = [entry for entry in self if not entry.sticky]
        if not loose:
            return None
        left = {level: self._without(level) for level in {entry.level for entry in loose}}

        ranks = [
            (
                not entry.urgent,
                *left[entry.level][:2],
                not entry.subscribes,
                *left[entry.level][2:],
                entry.key < self.own,
            )
            for entry in loose
        ]
        best = max(ranks)
        alike = [entry for entry, rank in zip(loose, ranks, strict=True) if rank == best]
        farthest = min if alike[0].key < self.own else max
        return farthest(alike, key=lambda entry: entry.key).name

    def _without(self, level: int) -> _Left:
        """With one entry less on this level, where there is one."""
        counts = {each: count - (each == level) for each, count in self._levels.items()}
        used = [each for each, count in counts.items() if count]
        top, most = max(used), max(counts.values())
        fullest = [each for each, count in counts.items() if count == most]
        return _Left(top, len(used) - top - 1, -len(fullest), max(fullest))
