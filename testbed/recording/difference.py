"""The difference between two sequences of publications: missing ones, extra ones, and those at another time."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from testbed.scenario import Publication

PublicationKey = tuple[str, str, int, int, tuple[int, ...]]  # node, topic, priority, size, place


@dataclass(frozen=True, slots=True)
class Moved:
    """The same publication at another time."""

    publication: Publication  # as planned
    by_ns: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference; empty if exactly the planned publications were found, each within the time limit."""

    same: int
    missing: tuple[Publication, ...]
    extra: tuple[Publication, ...]
    moved: tuple[Moved, ...]
    within_ns: int
    farthest_ns: int  # largest time difference of those that count as the same

    @property
    def empty(self) -> bool:
        return not (self.missing or self.extra or self.moved)

    def as_json(self) -> dict[str, Any]:
        """The JSON form: counts, and each difference."""
        return {
            "empty": self.empty,
            "same": self.same,
            "within_s": self.within_ns / 1e9,
            "farthest_s": self.farthest_ns / 1e9,
            "missing": [_as_json(publication) for publication in self.missing],
            "extra": [_as_json(publication) for publication in self.extra],
            "moved": [{**_as_json(one.publication), "by_s": one.by_ns / 1e9} for one in self.moved],
        }


def difference(
    planned: Iterable[Publication], found: Iterable[Publication], within_ns: int
) -> Difference:
    """Compare publications of the same node, topic, priority, size and place, in the order of time.

    Two are the same if their times differ by at most the limit. Of the others, as many as possible count as moved.
    """
    one, two = _by_key(planned), _by_key(found)
    same = farthest = 0
    missing: list[Publication] = []
    extra: list[Publication] = []
    moved: list[Moved] = []
    for what in sorted({*one, *two}):
        left, right, apart = _matched(one.get(what, []), two.get(what, []), within_ns)
        same += len(apart)
        farthest = max(farthest, *apart, 0)
        pairs = list(zip(left, right, strict=False))
        moved += [Moved(a, b.at_ns - a.at_ns) for a, b in pairs]
        missing += left[len(pairs) :]
        extra += right[len(pairs) :]
    return Difference(
        same,
        tuple(sorted(missing, key=_when)),
        tuple(sorted(extra, key=_when)),
        tuple(sorted(moved, key=lambda one: _when(one.publication))),
        within_ns,
        farthest,
    )


def _matched(
    one: list[Publication], two: list[Publication], within_ns: int
) -> tuple[list[Publication], list[Publication], list[int]]:
    """The unmatched ones of each, and the time differences of the matched ones; the number of matches is maximal."""
    left: list[Publication] = []
    right: list[Publication] = []
    apart: list[int] = []
    i = j = 0
    while i < len(one) and j < len(two):
        by_ns = two[j].at_ns - one[i].at_ns
        if abs(by_ns) <= within_ns:
            apart.append(abs(by_ns))
            i, j = i + 1, j + 1
        elif by_ns > 0:
            left.append(one[i])
            i += 1
        else:
            right.append(two[j])
            j += 1
    return left + one[i:], right + two[j:], apart


def _by_key(publications: Iterable[Publication]) -> dict[PublicationKey, list[Publication]]:
    found: defaultdict[PublicationKey, list[Publication]] = defaultdict(list)
    for each in publications:
        what = (each.node, each.topic, each.priority, each.size, each.place)
        found[what].append(each)
    for row in found.values():
        row.sort(key=_when)
    return found


def _when(publication: Publication) -> tuple[int, str]:
    return publication.at_ns, publication.node


def _as_json(publication: Publication) -> dict[str, Any]:
    return {
        "at_s": publication.at_ns / 1e9,
        "node": publication.node,
        "topic": publication.topic,
        "priority": publication.priority,
        "size": publication.size,
        **({"place": list(publication.place)} if publication.place else {}),
    }
