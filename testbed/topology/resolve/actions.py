"""The actions of a scenario: nodes and links that fail, change and are repaired, traffic, commands and marks."""

from collections.abc import Callable
from typing import Any

from testbed.topology.diagnostics.hints import quoted, with_article
from testbed.topology.diagnostics.source_map import Path
from testbed.topology.model import ActionEvent, ActionKind, Node, NodeKind, Scenario, routers_of
from testbed.topology.publication_times import nanoseconds
from testbed.topology.resolve.checking import Checking
from testbed.topology.resolve.links import LinkProfiles
from testbed.topology.resolve.selection import Objection, Selection, Targets
from testbed.topology.resolve.timing import MAX_TIMES, Timing, TriggerReader, timing
from testbed.topology.schema.sections import (
    RawChurn,
    RawEvent,
    RawFlap,
    RawLinkChange,
    RawLoad,
    RawTargets,
)
from testbed.topology.units import DURATION, SIZE


class Sides:
    """The sides of a partition: their nodes, and whether the core can separate them."""

    def __init__(
        self, checking: Checking, nodes: tuple[Node, ...], objection: Objection | None
    ) -> None:
        self._checking = checking
        self._selection = Selection(checking, nodes, objection)
        self._by_name = {node.name: node for node in nodes}

    def of(self, path: Path, sides: list[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
        """The names of the nodes of each side; mistakes become problems."""
        if not self._checking.shaped.sound(*path):
            return ()
        where = (*path, "sides")
        if len(sides) < 2:
            hint = 'write two or more: [["north[*]"], ["south[*]"]]'
            self._checking.value(where, "a partition has at least two sides", hint)
        found: list[tuple[Node, ...]] = [
            self._selection.of((*where, index), selectors) for index, selectors in enumerate(sides)
        ]
        side_of: dict[str, int] = {}
        behind: dict[str, Node] = {}  # router -> the first node behind it
        for index, nodes in enumerate(found):
            for node in nodes:
                self._check((*where, index), node, index, side_of, behind)
        return tuple(tuple(node.name for node in nodes) for nodes in found)

    def named(self, path: Path, name: str) -> Node | None:
        """The single node of this selector; several nodes are a problem."""
        nodes = self._selection.of(path, (name,))
        if len(nodes) > 1:
            message = f"{quoted(name)} means {len(nodes):,} nodes, and one is needed"
            self._checking.value(path, message, f"name one of them, as in {nodes[0].name}")
        return nodes[0] if len(nodes) == 1 else None

    def _check(
        self, path: Path, node: Node, side: int, side_of: dict[str, int], behind: dict[str, Node]
    ) -> None:
        if side_of.setdefault(node.name, side) != side:
            hint = "put each node on one side only"
            self._checking.value(path, f"{node.name} is on two sides", hint)
        for router in routers_of(node, self._by_name):
            other = behind.setdefault(router.name, node)
            if side_of[other.name] != side:
                self._checking.value(
                    path,
                    f"{node.name} and {other.name} share router {router.name}, which a partition cannot divide",
                    "put all nodes behind a router on the same side",
                )
                return


Details = tuple[tuple[str, Any], ...]
KINDS = tuple(kind for kind in ActionKind if kind in RawEvent.model_fields)  # of events in a file

_UNDONE = {  # repairing action -> the actions that it repairs, and their effect in words
    ActionKind.START: (
        (ActionKind.CRASH, ActionKind.STOP, ActionKind.CHURN),
        "has crashed or stopped",
    ),
    ActionKind.RESTORE: (
        (ActionKind.CUT, ActionKind.LINK, ActionKind.FLAP),
        "has a link that was cut or changed",
    ),
}
_INSTANT = (  # without a duration
    *(ActionKind.START, ActionKind.RESTORE),
    *(ActionKind.EXEC, ActionKind.MARK),
)
MAX_DATAGRAM = 1_472  # payload of a packet of 1,500 bytes
DATAGRAM_HEADERS = 14 + 20 + 8  # Ethernet, IPv4, UDP: part of the rate
MAX_DATAGRAMS_PER_S = 100_000  # of each sender
_REPEATING = (ActionKind.FLAP, ActionKind.CHURN)  # without `every`
_SHAPE = {  # key of the file -> field of Shape
    "rate": "rate_bps",
    "delay": "delay_s",
    "jitter": "jitter_s",
    "loss": "loss",
    "queue": "queue_bytes",
    "burst": "burst_bytes",
}


class Actions:
    """Collects the actions of one file, event by event."""

    def __init__(
        self,
        checking: Checking,
        nodes: tuple[Node, ...],
        profiles: LinkProfiles,
        trigger_reader: TriggerReader,
    ) -> None:
        self._checking = checking
        self._trigger_reader = trigger_reader
        self._profiles = profiles
        self._nodes = Targets(checking, nodes, _refuse_foreign_process)
        self._links = Targets(checking, nodes)
        self._ends = Targets(checking, nodes, _refuse_router)
        self._sides = Sides(checking, nodes, _refuse_router)
        self._found: list[tuple[Path, ActionEvent]] = []
        self._details: dict[ActionKind, Callable[[Path, Any], Details]] = {
            ActionKind.FLAP: self._flap,
            ActionKind.CHURN: self._churn,
            ActionKind.LINK: self._link,
            ActionKind.LOAD: self._load,
            ActionKind.EXEC: lambda _, raw: (("command", raw.command),),
        }

    def add(self, path: Path, event: RawEvent, duration_s: float) -> None:
        """Resolve this event; mistakes become problems."""
        kind = next(kind for kind in KINDS if getattr(event, kind) is not None)
        raw = getattr(event, kind)
        inner = (*path, kind.value)
        when = timing(self._checking, path, event, duration_s, self._trigger_reader)
        self._check_length(path, kind, event)
        names: tuple[str, ...] = ()
        details: Details = (("name", raw),) if kind is ActionKind.MARK else ()
        share = None
        if isinstance(raw, RawTargets):
            names = tuple(node.name for node in self._targets(kind).of(inner, raw))
            share = raw.share
        if kind is ActionKind.PARTITION:
            sides = self._sides.of(inner, raw.sides)
            names, details = tuple(name for side in sides for name in side), (("sides", sides),)
        elif kind in self._details:
            details = self._details[kind](inner, raw)
        if kind is ActionKind.LOAD and (to := dict(details)["to"]) in names:
            hint = "choose another node"
            self._checking.value((*inner, "to"), f"{to} would send to itself", hint)
        for_s = _length(kind, when, duration_s)
        if kind in _REPEATING and when.clear and self._checking.shaped.sound(*inner):
            self._check_times(inner, kind, for_s or 0.0, dict(details))
        for moment in when.moments_s:
            resolved = ActionEvent(
                moment, kind, names, 1.0 if share is None else share, for_s, details, when.when
            )
            self._found.append((inner, resolved))

    def _targets(self, kind: ActionKind) -> Targets:
        if kind.of_links:
            return self._links
        return self._ends if kind in (ActionKind.LOAD, ActionKind.EXEC) else self._nodes

    def in_order(self) -> tuple[ActionEvent, ...]:
        """All actions in the order of time; a repair of something that never broke is a problem."""
        self._found.sort(key=lambda found: found[1].at_s)
        broken: dict[ActionKind, set[str]] = {kind: set() for kind in ActionKind}
        ever: dict[ActionKind, set[str]] = {kind: set() for kind in ActionKind}
        for _, each in self._found:
            ever[each.kind].update(each.nodes)
            if each.when is not None:  # it may fire at any time
                broken[each.kind].update(each.nodes)
        reported: set[Path] = set()
        for path, each in self._found:
            broken[each.kind].update(each.nodes)
            if each.kind not in _UNDONE or not self._checking.shaped.sound("scenario"):
                continue
            causes, how = _UNDONE[each.kind]
            known, moment = broken, f"before {DURATION.write(each.at_s)}"
            if each.when is not None:  # so may a repair: after any event of the file
                known, moment = ever, "in this scenario"
            before = set().union(*(known[cause] for cause in causes))
            if each.nodes and before.isdisjoint(each.nodes) and path not in reported:
                reported.add(path)
                self._checking.key(
                    path,
                    f"none of these nodes {how} {moment}",
                    f"add an event with `{causes[0]}` before it, or remove this one",
                )
        return tuple(each for _, each in self._found)

    def _check_length(self, path: Path, kind: ActionKind, event: RawEvent) -> None:
        if kind in _REPEATING and event.every is not None:
            hint = "`for` or `until` sets its duration"
            self._checking.key((*path, "every"), f"`{kind}` already repeats", hint)
        ends = [key for key, given in (("for", event.length), ("until", event.until)) if given]
        if kind in _INSTANT and event.every is None:
            for key in ends:
                message = f"`{kind}` has no duration: `{key}` has no effect"
                self._checking.key((*path, key), message, "remove it, or add `every: 10s`")

    def _check_times(
        self, path: Path, kind: ActionKind, for_s: float, details: dict[str, Any]
    ) -> None:
        """Limit the repetitions of a repeating action; of a random one, their average number."""
        if kind is ActionKind.FLAP:
            turn_s = details["down_s"] + details["up_s"]
            times = for_s / turn_s if turn_s else 0.0
            hint = "lengthen `down` or `up`, or set `until`"
        else:
            times = for_s * (details["leave_per_s"] + details["join_per_s"])
            hint = "let fewer leave and join, or set `until`"
        if times > MAX_TIMES:
            message = f"it would happen {times:,.0f} times; at most {MAX_TIMES:,} are possible"
            self._checking.key(path, message, hint)

    def _flap(self, path: Path, raw: RawFlap) -> Details:
        for key in ("down", "up"):
            if self._checking.shaped.sound(*path, key) and not nanoseconds(getattr(raw, key)):
                self._checking.value(
                    (*path, key), "the duration must be greater than zero", "write it like 2s"
                )
        return (("down_s", raw.down), ("up_s", raw.up))

    def _churn(self, path: Path, raw: RawChurn) -> Details:
        if raw.leave is None and self._checking.shaped.sound(*path):
            hint = "add `leave: 6/min`"
            self._checking.key(path, "`leave` is missing here: no node ever leaves", hint)
        rates = [(key, getattr(raw, key)) for key in ("leave", "join")]
        per_s = [(f"{key}_per_s", 0.0 if rate is None else float(1 / rate)) for key, rate in rates]
        return (*per_s, ("by", raw.by))

    def _load(self, path: Path, raw: RawLoad) -> Details:
        to = None
        if self._checking.shaped.sound(*path, "to"):
            to = self._sides.named((*path, "to"), raw.to)
        most = MAX_DATAGRAM
        if raw.size > most:
            self._checking.value(
                (*path, "size"), f"a datagram has at most {SIZE.write(most)}", "send more of them"
            )
        if self._checking.shaped.sound(*path):
            per_s = raw.rate / ((raw.size + DATAGRAM_HEADERS) * 8)
            if per_s > MAX_DATAGRAMS_PER_S:
                self._checking.value(
                    (*path, "rate"),
                    f"each would send {per_s:,.0f} datagrams a second; at most {MAX_DATAGRAMS_PER_S:,} are possible",
                    "lower `rate`, or send bigger ones with `size`",
                )
        return (("to", to and to.name), ("rate_bps", raw.rate), ("size", raw.size))

    def _link(self, path: Path, raw: RawLinkChange) -> Details:
        self._profiles.check((*path, "profile"), raw.profile)
        given = {key: getattr(raw, key) for key in _SHAPE}
        values = tuple((_SHAPE[key], value) for key, value in given.items() if value is not None)
        if raw.profile is None and not values and self._checking.shaped.sound(*path):
            hint = "add `rate`, `delay`, `jitter`, `loss`, `queue` or `profile`"
            self._checking.key(path, "the event changes nothing", hint)
        directions = ("up", "down") if raw.direction == "both" else (raw.direction,)
        return (("profile", raw.profile), ("values", values), ("directions", directions))


def profiles_of(scenario: Scenario) -> set[str]:
    """The link profiles that the scenario's actions set."""
    details = (dict(each.details) for each in scenario.actions)
    return {name for each in details if (name := each.get("profile"))}


def _length(kind: ActionKind, when: Timing, duration_s: float) -> float | None:
    """The duration of an action: a repeating one lasts to the scenario's end by default, an instant one has none."""
    if kind in _INSTANT:
        return None
    if kind in _REPEATING and when.for_s is None:
        return max(0.0, duration_s - when.moments_s[0])
    return when.for_s


def _refuse_router(node: Node) -> tuple[str, str] | None:
    if node.kind is not NodeKind.ROUTER:
        return None
    return f"{node.name} is a router, which only forwards packets", "name the nodes behind it"


def _refuse_foreign_process(node: Node) -> tuple[str, str] | None:
    if node.ours:
        return None
    return (
        f"{node.name} is {with_article(node.kind)}; only brokers, sensors and subscribers can crash, stop or start",
        "`cut` its link instead",
    )
