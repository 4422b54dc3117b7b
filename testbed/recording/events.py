"""All events of a run in one sequence, in the order of time: from logs, manifest and journal."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from testbed.recording.actions import recorded
from testbed.topology.model import ActionKind, Topology

Event = dict[
    str, Any
]  # t (ns since 1970), kind, event, node (or None), and the fields of the event

PUBLICATION, RECEPTION, LOSS = "publication", "reception", "loss"
CONNECTION, NODE, FAULT, LINK, MARK, RUN = "connection", "node", "fault", "link", "mark", "run"
KINDS = (PUBLICATION, RECEPTION, LOSS, FAULT, LINK, CONNECTION, MARK, NODE, RUN)
LOST = "lost"
PLAY = "play"  # step of the journal: the start of a scenario
IN_MANIFEST = frozenset({"link"})  # steps that the manifest describes in more detail
_OF_LOGS = {
    "publish": PUBLICATION,
    "receive": RECEPTION,
    "duplicate": RECEPTION,
    "drop": LOSS,
    "overflow": LOSS,
    "connect": CONNECTION,
    "disconnect": CONNECTION,
    "unreachable": CONNECTION,
    "refuse": CONNECTION,
}
_OF_ACTIONS = {ActionKind.MARK.value: MARK, ActionKind.LINK.value: LINK}


def log_event(line: Mapping[str, Any]) -> Event:
    """The event of a line of a node's log. The node's kind, which its first line gives, becomes `role`."""
    own = {"role": line["kind"]} if "kind" in line else {}
    return {**line, **own, "kind": _OF_LOGS.get(line["event"], NODE)}


def journal_event(line: Mapping[str, Any]) -> Event:
    """The event of a line of the journal; a scenario has the start time of its clock."""
    rest = {name: value for name, value in line.items() if name not in ("t", "step")}
    t = rest.pop("start_ns", line["t"]) if line["step"] == PLAY else line["t"]
    return {"t": t, "kind": RUN, "event": line["step"], "node": None, **rest}


class ManifestEvents:
    """The events of a growing manifest, each returned once."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._ended: int | None = None

    def fresh(self, manifest: Mapping[str, Any], *, journalled: bool) -> Iterator[Event]:
        """The events since the last call; `journalled`: the journal has the starts of scenarios."""
        for entry in self._new("actions", recorded(manifest)):
            rest = {name: entry[name] for name in ("due_ns", "targets", "details")}
            kind = _OF_ACTIONS.get(entry["action"], FAULT)
            yield _event(entry["t_ns"], kind, entry["action"], **rest)
        for entry in self._new("link_changes", manifest.get("link_changes") or []):
            rest = {name: value for name, value in entry.items() if name not in ("t_ns", "action")}
            yield _event(entry["t_ns"], LINK, entry["action"], **rest)
        play = manifest.get("play")
        if play and play["end_ns"] != self._ended:
            self._ended = play["end_ns"]
            if not journalled:
                yield _event(play["start_ns"], RUN, PLAY)
            yield _event(play["end_ns"], RUN, "played", settled=play["settled"])

    def _new(self, name: str, entries: list[Any]) -> list[Any]:
        before = self._counts.get(name, 0)
        self._counts[name] = len(entries)
        return entries[before:]


def _event(t: int, kind: str, event: str, **rest: Any) -> Event:
    return {"t": t, "kind": kind, "event": event, "node": None, **rest}


@dataclass(slots=True)
class Deliveries:
    """Expected deliveries: collects publications and receptions, and finds the lost messages at the end."""

    topology: Topology
    _published: dict[str, Event] = field(default_factory=dict)
    _received: set[tuple[str, str]] = field(default_factory=set)

    def note(self, event: Event) -> None:
        """Collect one event of any kind."""
        if event["event"] == "publish":
            self._published[event["id"]] = event
        elif event["event"] == "receive":
            self._received.add((event["id"], event["node"]))

    def lost(self, t: int) -> Iterator[Event]:
        """The messages that never arrived, as events at time `t`."""
        for identity, publication in self._published.items():
            place = tuple(publication.get("place") or ())
            for name in self.topology.receivers(
                publication["topic"], publication["priority"], place
            ):
                if name != publication["node"] and (identity, name) not in self._received:
                    about = {key: publication[key] for key in ("id", "topic", "priority", "size")}
                    published = {"origin": publication["node"], "published_ns": publication["t"]}
                    yield {**_event(t, LOSS, LOST), "node": name, **about, **published}


class EventQueue:
    """Sorts events of several sources, which arrive slightly late, by time."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Event]] = []
        self._count = 0

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            self._count += 1
            heappush(self._waiting, (event["t"], self._count, event))

    def until(self, t: int | None) -> Iterator[Event]:
        """The events up to this time, or all."""
        while self._waiting and (t is None or self._waiting[0][0] <= t):
            yield heappop(self._waiting)[2]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """A filter of events; empty, it accepts all."""

    kinds: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    levels: frozenset[int] = frozenset()

    def __contains__(self, event: Event) -> bool:
        if self.kinds and event["kind"] not in self.kinds:
            return False
        if self.levels and event.get("priority") not in self.levels:
            return False
        return not self.nodes or not self.nodes.isdisjoint(_names_in(event))


def _names_in(event: Event) -> Iterator[str]:
    """The names of the nodes and links that the event concerns."""
    for name in ("node", "peer", "target"):
        if isinstance(event.get(name), str):
            yield event[name]
    for name in ("targets", "links"):
        yield from event.get(name) or ()
