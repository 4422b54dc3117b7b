"""What happens to nodes and links moment by moment, unfolded from what the file says: the same seed strikes the same.

Whoever is down already is not struck again, and only what is broken is mended. What lasts a while is undone for those
whom it has struck, unless something else has struck them since; at the latest when the scenario is over.
Pure: time is an argument.
"""

import heapq
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from testbed.scenario.model import NUMBER, ONLY, TimedAction, played_ns
from testbed.topology.model import ActionEvent, ActionKind, Topology
from testbed.topology.publication_times import nanoseconds

# Who is down, cut or changed, and by which stroke: the end of one stroke leaves alone what another has done since.


Changes = Mapping[str, Any]  # details of a `link` action


class BrokenNodes:
    """Nodes that are down, or whose links are cut: each by one stroke."""

    def __init__(self) -> None:
        self._by: dict[str, int] = {}

    def holds(self, name: str, by: int | None = None) -> bool:
        """Whether it is so; `by`: because of this stroke."""
        return name in self._by if by is None else self._by.get(name) == by

    def add(self, names: Iterable[str], by: int) -> None:
        """From now on they are."""
        self._by.update(dict.fromkeys(names, by))

    def repair(self, names: Iterable[str]) -> None:
        """From now on they are not."""
        for name in names:
            self._by.pop(name, None)


class ChangedLinks:
    """Nodes whose links have other values: each by one stroke or several, of which the later goes first."""

    def __init__(self) -> None:
        self._by: dict[str, dict[int, Changes]] = {}
        self._lasting: set[int] = set()  # strokes that nothing ends

    def holds(self, name: str, by: int | None = None) -> bool:
        """Whether it is so; `by`: also because of this stroke."""
        return name in self._by if by is None else by in self._by.get(name, ())

    def add(self, names: Iterable[str], by: int, changes: Changes, *, lasting: bool) -> None:
        """They get these values as well; the same ones again, of what nothing ends, are kept once."""
        if lasting:
            self._lasting.add(by)
        for name in names:
            held = self._by.get(name, {}).items()
            kept = {
                one: each
                for one, each in held
                if not (lasting and one in self._lasting and each == changes)
            }
            self._by[name] = {**kept, by: changes}

    def repair(self, names: Iterable[str], by: int | None = None) -> None:
        """They are as the file says; `by`: but for what other strokes have made of them."""
        for name in names:
            held = self._by.pop(name, {})
            if rest := {one: each for one, each in held.items() if by is not None and one != by}:
                self._by[name] = rest

    def left(self, names: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Changes]]:
        """What still holds for these, in the order in which it came."""
        found: dict[int, list[str]] = {}
        for name in names:
            for one in self._by.get(name, ()):
                found.setdefault(one, []).append(name)
        for one in sorted(found):
            yield tuple(found[one]), self._by[found[one][0]][one]


ENDS = {ActionKind.PARTITION: ActionKind.REUNITE, ActionKind.LOAD: ActionKind.UNLOAD}
_STOPS_A_NODE = (ActionKind.CRASH, ActionKind.STOP)
_EARLIER, _NORMAL = 0, 1  # what ends comes before what begins at the same moment


@dataclass(frozen=True, slots=True)
class PendingAction:
    """Something that is to happen to some of these nodes; whom it strikes is seen when its time comes."""

    kind: ActionKind
    nodes: tuple[str, ...]
    details: Mapping[str, Any]
    chance: str = ""  # what the choice among them follows from
    wanted: int | None = None  # so many of them; None: all
    steady: bool = False  # chosen among all named, whatever state they are in: the same each time
    lasts_ns: int | None = None
    undoes: int | None = None  # the stroke that it ends; None: whatever is broken, it is mended


class PendingActions:
    """What is still to happen. Times are those of the scenario; incidents come with the times at which it is played."""

    def __init__(self, topology: Topology) -> None:
        self._seed = topology.seed
        self._speed = topology.scenario.speed
        self._end_ns = nanoseconds(topology.scenario.duration_s)
        self._to_come: list[tuple[int, int, int, PendingAction]] = []
        self._number = 0
        self._last_id = 0  # that have struck somebody, or are about to
        self._down, self._cut, self._changed = BrokenNodes(), BrokenNodes(), ChangedLinks()
        self._open: dict[int, PendingAction] = {}  # what goes on, by its number: what ends it
        self._begun = 0

    def add(self, place: int, event: ActionEvent, from_ns: int = 0) -> None:
        """A happening of the file, the so-manieth; its times count from this moment of the scenario."""
        at_ns = from_ns + nanoseconds(event.at_s)
        lasts_ns = None if event.for_s is None else nanoseconds(event.for_s)
        details = dict(event.details)
        chance = f"{self._seed}/fault/{place}"
        wanted = None
        if event.share < 1.0:
            wanted = max(1, round(event.share * len(event.nodes)))
        match event.kind:
            case ActionKind.FLAP:
                self._flap(at_ns, lasts_ns or 0, event.nodes, details, chance, wanted)
            case ActionKind.CHURN:
                self._churn(at_ns, lasts_ns or 0, event.nodes, details, chance)
            case kind:
                action = PendingAction(
                    kind, event.nodes, details, chance, wanted, lasts_ns=lasts_ns
                )
                self._push(at_ns, action)

    @property
    def next_ns(self) -> int | None:
        """When something is due, as it is played; None: nothing more comes before the scenario's end."""
        if not self._to_come or self._to_come[0][0] >= self._end_ns:
            return None
        return played_ns(self._to_come[0][0], self._speed)

    def due(self, now_ns: int | None = None) -> Iterator[TimedAction]:
        """What happens until now, as it is played (None: until the end); those that strike nobody are left out."""
        while (next_ns := self.next_ns) is not None and (now_ns is None or next_ns <= now_ns):
            at_ns, _, _, action = heapq.heappop(self._to_come)
            yield from self._perform(action, at_ns, next_ns)

    def closing(self, now_ns: int) -> list[TimedAction]:
        """The scenario is over: ends of what was to last a while, or what no command could end."""
        found: list[TimedAction] = []
        for at_ns, rank, _, action in sorted(self._to_come, key=lambda one: one[:3]):
            if rank == _EARLIER:
                found += self._perform(action, at_ns, now_ns)
        found += [
            TimedAction(now_ns, one.kind, one.nodes, one.details) for one in self._open.values()
        ]
        self._to_come.clear()
        self._open.clear()
        return found

    def _perform(self, action: PendingAction, at_ns: int, played: int) -> Iterator[TimedAction]:
        self._last_id += 1
        affected = self._apply(action)
        if not affected and action.nodes:
            return
        action = self._numbered(action, affected)
        if action.lasts_ns is not None and (undo := self._undone(action, affected)) is not None:
            self._push(at_ns + action.lasts_ns, undo, _EARLIER)
        yield TimedAction(played, action.kind, affected, action.details)
        if action.undoes is not None and action.details.get(ONLY) == ActionKind.LINK.value:
            for names, changes in self._changed.left(affected):  # what others have made of them
                yield TimedAction(played, ActionKind.LINK, names, changes)

    def _numbered(self, action: PendingAction, affected: tuple[str, ...]) -> PendingAction:
        """What goes on gets a number, by which it is ended."""
        if action.kind in ENDS:
            self._begun += 1
            numbered = replace(action, details={**action.details, NUMBER: self._begun})
            self._open[self._begun] = PendingAction(
                ENDS[action.kind], affected, {NUMBER: self._begun}
            )
            return numbered
        self._open.pop(action.details.get(NUMBER, 0), None)
        return action

    def _push(self, at_ns: int, action: PendingAction, rank: int = _NORMAL) -> None:
        if at_ns < self._end_ns or rank == _EARLIER:
            heapq.heappush(self._to_come, (at_ns, rank, self._number, action))
            self._number += 1

    def _flap(
        self,
        at_ns: int,
        lasts_ns: int,
        nodes: tuple[str, ...],
        details: Mapping[str, Any],
        chance: str,
        wanted: int | None,
    ) -> None:
        down_ns, up_ns = nanoseconds(details["down_s"]), nanoseconds(details["up_s"])
        for begin in range(at_ns, min(at_ns + lasts_ns, self._end_ns), down_ns + up_ns):
            rest = min(down_ns, at_ns + lasts_ns - begin)
            cut = PendingAction(
                ActionKind.CUT, nodes, {}, chance, wanted, steady=True, lasts_ns=rest
            )
            self._push(begin, cut)

    def _churn(
        self,
        at_ns: int,
        lasts_ns: int,
        nodes: tuple[str, ...],
        details: Mapping[str, Any],
        chance: str,
    ) -> None:
        """Independent of each other, at moments without memory: two Poisson processes."""
        for kind, per_s in (
            (ActionKind(details["by"]), details["leave_per_s"]),
            (ActionKind.START, details["join_per_s"]),
        ):
            drawn = random.Random(f"{chance}/{kind}")
            passed_s = drawn.expovariate(per_s) if per_s else float("inf")
            turn = 0
            while passed_s < lasts_ns / 1e9:
                action = PendingAction(kind, nodes, {}, f"{chance}/{kind}/{turn}", wanted=1)
                self._push(at_ns + round(passed_s * 1e9), action)
                passed_s += drawn.expovariate(per_s)
                turn += 1

    def _apply(self, action: PendingAction) -> tuple[str, ...]:
        """Whom it strikes; from now on they are as it makes them."""
        named = action.nodes
        if action.steady:
            named = _drawn(named, action)
        able = tuple(name for name in named if self._applies(action, name))
        if not action.steady:
            able = _drawn(able, action)
        match action.kind:
            case ActionKind.CRASH | ActionKind.STOP:
                self._down.add(able, self._last_id)
            case ActionKind.START:
                self._down.repair(able)
            case ActionKind.CUT:
                self._cut.add(able, self._last_id)
            case ActionKind.LINK:
                lasting = action.lasts_ns is None
                self._changed.add(able, self._last_id, action.details, lasting=lasting)
            case ActionKind.RESTORE:
                only = action.details.get(ONLY)
                if only != ActionKind.LINK.value:
                    self._cut.repair(able)
                if only != ActionKind.CUT.value:
                    self._changed.repair(able, action.undoes)
        return able

    def _applies(self, action: PendingAction, name: str) -> bool:
        match action.kind:
            case ActionKind.CRASH | ActionKind.STOP:
                return not self._down.holds(name)
            case ActionKind.START:
                return self._down.holds(name, action.undoes)
            case ActionKind.CUT:
                return not self._cut.holds(name)
            case ActionKind.RESTORE:
                broken: dict[str, BrokenNodes | ChangedLinks] = {
                    ActionKind.CUT.value: self._cut,
                    ActionKind.LINK.value: self._changed,
                }
                only = action.details.get(ONLY)
                return any(
                    each.holds(name, action.undoes)
                    for what, each in broken.items()
                    if only in (None, what)
                )
            case _:
                return True

    def _undone(self, action: PendingAction, affected: tuple[str, ...]) -> PendingAction | None:
        if action.kind in _STOPS_A_NODE:
            return PendingAction(ActionKind.START, affected, {}, undoes=self._last_id)
        if action.kind in (ActionKind.CUT, ActionKind.LINK):
            only = {ONLY: action.kind.value}
            return PendingAction(ActionKind.RESTORE, affected, only, undoes=self._last_id)
        return self._open.get(action.details.get(NUMBER, 0))


def _drawn(names: tuple[str, ...], action: PendingAction) -> tuple[str, ...]:
    """So many of them as are wanted, by chance, in their order."""
    if action.wanted is None or action.wanted >= len(names):
        return names
    chosen = set(random.Random(action.chance).sample(names, action.wanted))
    return tuple(name for name in names if name in chosen)
