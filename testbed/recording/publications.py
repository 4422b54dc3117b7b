"""Recorded publications: read from the publishers' logs, and compared with the planned timeline."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from testbed.scenario import Publication

PUBLISHED = "publish"  # event of a node's log


@dataclass(frozen=True, slots=True)
class RecordedPublication:
    """One publication; times count from the scenario's start, except for `t_ns`, which counts from 1970.

    `due_ns` and `late_ns` are None for a publication without a planned time, such as a message injected by hand.
    """

    at_ns: int
    node: str
    topic: str
    priority: int
    size: int
    place: tuple[int, ...]
    id: str
    t_ns: int
    due_ns: int | None
    late_ns: int | None
    planned: bool

    @property
    def publication(self) -> Publication:
        """The same publication, at its recorded time."""
        return Publication(self.at_ns, self.node, self.topic, self.priority, self.size, self.place)


def recorded_publications(
    planned: Iterable[Publication], logged: Iterable[Mapping[str, Any]], start_ns: int
) -> list[RecordedPublication]:
    """All publications since the start, in the order of time; `logged`: lines of the nodes' logs, in any order.

    A node logs its lateness, so the planned time of a publication is known to the nanosecond.
    """
    waiting = Counter(planned)
    rows = sorted(
        _row(line, start_ns, waiting)
        for line in logged
        if line.get("event") == PUBLISHED and line["t"] >= start_ns
    )
    return [row for _, _, row in rows]


def _row(
    line: Mapping[str, Any], start_ns: int, waiting: Counter[Publication]
) -> tuple[int, str, RecordedPublication]:
    t_ns, late_ns = int(line["t"]), int(line.get("late_ns") or 0)
    at_ns = t_ns - start_ns
    place = tuple(line.get("place") or ())
    what = (line["node"], line["topic"], line["priority"], line["size"], place)
    due = Publication(at_ns - late_ns, *what)
    planned = waiting[due] > 0
    if planned:
        waiting[due] -= 1
    timed = planned or late_ns != 0
    row = RecordedPublication(
        at_ns,
        *what,
        id=line["id"],
        t_ns=t_ns,
        due_ns=due.at_ns if timed else None,
        late_ns=late_ns if timed else None,
        planned=planned,
    )
    return at_ns, row.id, row


def never_published(
    planned: Iterable[Publication], rows: Iterable[RecordedPublication]
) -> list[Publication]:
    """Planned publications that no log has: the publisher was down, or the scenario was interrupted."""
    done = Counter(
        Publication(row.due_ns, row.node, row.topic, row.priority, row.size, row.place)
        for row in rows
        if row.planned and row.due_ns is not None
    )
    missing = []
    for publication in planned:
        if done[publication]:
            done[publication] -= 1
        else:
            missing.append(publication)
    return missing


def as_lines(rows: Sequence[RecordedPublication] | Sequence[Publication]) -> Iterator[str]:
    """One JSON object a line."""
    return (json.dumps(asdict(row)) + "\n" for row in rows)


def read_recorded_publications(lines: Iterable[str]) -> list[RecordedPublication]:
    """The inverse of `as_lines`; an incomplete line is left out."""
    return [RecordedPublication(**_with_place(value)) for value in _values(lines)]


def read_planned_publications(lines: Iterable[str]) -> list[Publication]:
    """A compiled timeline, as `play` writes it."""
    return [Publication(**_with_place(value)) for value in _values(lines)]


def _values(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(ValueError):
            yield json.loads(line)


def _with_place(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "place": tuple(value.get("place") or ())}
