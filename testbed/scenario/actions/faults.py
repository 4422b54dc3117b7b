"""The actions on nodes and links that follow from the events of a file. The same seed affects the same nodes.

A node that is down cannot crash or stop, and only a broken node or link is repaired. An action with a duration is
undone for the nodes that it affected, unless a later action affected them, too; at the latest when the scenario ends.
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

# Which nodes are down, cut or changed, and by which action. The end of one action does not undo a later one.


Changes = Mapping[str, Any]  # details of a `link` action


class BrokenNodes:
    """Nodes that are down, or whose links are cut: each by one action."""

    def __init__(self) -> None:
        self._by: dict[str, int] = {}

    def holds(self, name: str, by: int | None = None) -> bool:
        """Whether this node is broken; `by`: because of this action."""
        return name in self._by if by is None else self._by.get(name) == by

    def add(self, names: Iterable[str], by: int) -> None:
        """These nodes are broken from now on."""
        self._by.update(dict.fromkeys(names, by))

    def repair(self, names: Iterable[str]) -> None:
        """These nodes are not broken any more."""
        for name in names:
            self._by.pop(name, None)


class ChangedLinks:
    """Nodes whose links have other values: each by one action or several, of which the last has precedence."""

    def __init__(self) -> None:
        self._by: dict[str, dict[int, Changes]] = {}
        self._lasting: set[int] = set()  # actions without an end

    def holds(self, name: str, by: int | None = None) -> bool:
        """Whether this node's link is changed; `by`: also because of this action."""
        return name in self._by if by is None else by in self._by.get(name, ())

    def add(self, names: Iterable[str], by: int, changes: Changes, *, lasting: bool) -> None:
        """Change the links of these nodes. Equal changes without an end are stored once."""
        if lasting:
            self._lasting.add(by)
        for name in names:
            held = self._by.get(name, {}).items()
            others = {
                one: each
                for one, each in held
                if not (lasting and one in self._lasting and each == changes)
            }
            self._by[name] = {**others, by: changes}

    def repair(self, names: Iterable[str], by: int | None = None) -> None:
        """Undo all changes of these nodes' links; `by`: only those of this action."""
        for name in names:
            held = self._by.pop(name, {})
            if rest := {one: each for one, each in held.items() if by is not None and one != by}:
                self._by[name] = rest

    def left(self, names: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Changes]]:
        """The changes that still hold for these nodes, oldest first."""
        found: dict[int, list[str]] = {}
        for name in names:
            for one in self._by.get(name, ()):
                found.setdefault(one, []).append(name)
        for one in sorted(found):
            yield tuple(found[one]), self._by[found[one][0]][one]


ENDS = {ActionKind.PARTITION: ActionKind.HEAL, ActionKind.LOAD: ActionKind.UNLOAD}
_STOPS_A_NODE = (ActionKind.CRASH, ActionKind.STOP)
_EARLIER, _NORMAL = 0, 1  # at the same moment, ends come before beginnings


@dataclass(frozen=True, slots=True)
class PendingAction:
    """An action that waits for its time. Which of its nodes it affects is decided then."""

    kind: ActionKind
    nodes: tuple[str, ...]
    details: Mapping[str, Any]
    chance: str = ""  # seed of the choice among the nodes
    wanted: int | None = None  # number of nodes to choose; None: all
    steady: bool = False  # choose among all nodes, whatever their state: the same ones each time
    lasts_ns: int | None = None
    undoes: int | None = None  # the action that it ends; None: repair whatever is broken


class PendingActions:
    """The actions to come. Times are those of the scenario; returned actions have the times of play."""

    def __init__(self, topology: Topology) -> None:
        self._seed = topology.seed
        self._speed = topology.scenario.speed
        self._end_ns = nanoseconds(topology.scenario.duration_s)
        self._to_come: list[tuple[int, int, int, PendingAction]] = []
        self._number = 0
        self._last_id = 0  # of the action performed last
        self._down, self._cut, self._changed = BrokenNodes(), BrokenNodes(), ChangedLinks()
        self._open: dict[
            int, PendingAction
        ] = {}  # number of an action that lasts -> the action that ends it
        self._begun = 0

    def add(self, index: int, event: ActionEvent, from_ns: int = 0) -> None:
        """Add the event of this index in the file; its times count from `from_ns` of the scenario."""
        at_ns = from_ns + nanoseconds(event.at_s)
        lasts_ns = None if event.for_s is None else nanoseconds(event.for_s)
        details = dict(event.details)
        chance = f"{self._seed}/fault/{index}"
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
        """The time at which the next action is played; None: no action is left before the scenario's end."""
        if not self._to_come or self._to_come[0][0] >= self._end_ns:
            return None
        return played_ns(self._to_come[0][0], self._speed)

    def due(self, now_ns: int | None = None) -> Iterator[TimedAction]:
        """The actions up to now, as played (None: up to the end), without those that affect no node."""
        while (next_ns := self.next_ns) is not None and (now_ns is None or next_ns <= now_ns):
            at_ns, _, _, action = heapq.heappop(self._to_come)
            yield from self._perform(action, at_ns, next_ns)

    def closing(self, now_ns: int) -> list[TimedAction]:
        """The scenario is over: the ends of all actions that still last."""
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
            for names, changes in self._changed.left(affected):  # changes of other actions
                yield TimedAction(played, ActionKind.LINK, names, changes)

    def _numbered(self, action: PendingAction, affected: tuple[str, ...]) -> PendingAction:
        """Give an action that lasts a number, by which it is ended."""
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
        """Leave and join at random moments: two independent Poisson processes."""
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
        """Choose the nodes that the action affects, and record their new state."""
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
    """Choose the wanted number of nodes at random, and keep their order."""
    if action.wanted is None or action.wanted >= len(names):
        return names
    chosen = set(random.Random(action.chance).sample(names, action.wanted))
    return tuple(name for name in names if name in chosen)
