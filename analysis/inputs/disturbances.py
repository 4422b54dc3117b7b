"""Disturbances of a run: faults, link changes and background traffic in the manifest, with begin and end. Pure.

action          ended by
cut             restore
crash, stop     start
partition       heal, of the same number
load            unload, of the same number
link, set       restore (of link changes), reset, or the next change of the same link
any other       is over at once
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.inputs.link_settings import DIRECTIONS, LinkDirection
from analysis.inputs.manifest import NEVER_NS, actions_of

CHANGES = ("link", "set")
ENDS: Mapping[str, Collection[str]] = {
    "cut": ("restore",),
    "crash": ("start",),
    "stop": ("start",),
    "partition": ("heal",),
    "load": ("unload",),
    **dict.fromkeys(CHANGES, ("restore", "reset", *CHANGES)),
}
NUMBERED = ("partition", "load")  # actions that their number ends, not their nodes
ONLY = "only"  # key of a restore's details: what it restores
NOT_BEGINNINGS = frozenset({"restore", "start", "heal", "unload", "reset", "mark"})
OF_LINKS = ("cut", "restore", "link")
BLOCKING_LINKS, BLOCKING_NODES = ("cut",), ("crash", "stop")
ACTIONS, LINK_CHANGES, REPAIR = "actions", "link_changes", "repair"  # where it is recorded


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault, a link change or background traffic, from its begin to its end."""

    kind: str
    targets: tuple[str, ...]
    from_ns: int
    until_ns: int  # NEVER_NS: it had no end in the run
    source: str  # ACTIONS, LINK_CHANGES or REPAIR
    entry: Mapping[str, Any]  # as recorded

    def blocks(self, src: str, dst: str, links: Collection[LinkDirection]) -> bool:
        """Whether nothing crosses these links from `src` to `dst` while it lasts."""
        if self.kind in BLOCKING_LINKS:
            details = self.entry.get("details", self.entry)
            ways = details.get("directions") or DIRECTIONS
            return any(link in self.targets and way in ways for link, way in links)
        if self.kind in BLOCKING_NODES:
            return src in self.targets or dst in self.targets
        return self.kind == "partition" and self.separates(src, dst)

    def separates(self, src: str, dst: str) -> bool:
        """Whether a partition has these nodes on different sides."""
        sides = self.entry["details"].get("sides") or ()
        of = [
            next((n for n, side in enumerate(sides) if node in side), None) for node in (src, dst)
        ]
        return None not in of and of[0] != of[1]


def disturbances(manifest: Mapping[str, Any]) -> list[Disturbance]:
    """All disturbances in the order of time, each with the targets that it ended for at the same moment."""
    entries = [*_actions(manifest), *_changes_by_hand(manifest)]
    entries.sort(key=lambda one: one.from_ns)
    found = []
    for number, begin in enumerate(entries):
        if begin.kind in NOT_BEGINNINGS:
            continue
        for until_ns, targets in _ends(begin, entries[number + 1 :]).items():
            found.append(
                Disturbance(begin.kind, targets, begin.from_ns, until_ns, begin.source, begin.entry)
            )
    return found


def _actions(manifest: Mapping[str, Any]) -> list[Disturbance]:
    return [
        Disturbance(
            str(entry["action"]),
            tuple(entry["targets"]),
            int(entry["t_ns"]),
            NEVER_NS,
            ACTIONS,
            entry,
        )
        for entry in actions_of(manifest)
    ]


def _changes_by_hand(manifest: Mapping[str, Any]) -> list[Disturbance]:
    """The link changes without those that the scenario's own actions made: they are recorded as actions, too."""
    own = [
        (int(entry.get("due_ns", entry["t_ns"])), int(entry["t_ns"]))
        for entry in manifest.get(ACTIONS) or ()
        if entry["action"] in OF_LINKS
    ]
    return [
        Disturbance(
            str(entry["action"]),
            tuple(entry["links"]),
            int(entry["t_ns"]),
            NEVER_NS,
            LINK_CHANGES,
            entry,
        )
        for entry in manifest.get(LINK_CHANGES) or ()
        if not any(begin <= int(entry["t_ns"]) <= end for begin, end in own)
    ]


def _ends(begin: Disturbance, later: Sequence[Disturbance]) -> dict[int, tuple[str, ...]]:
    """End -> the targets for which the disturbance ended then."""
    if begin.kind not in ENDS:
        return {begin.from_ns: begin.targets}
    if begin.kind in NUMBERED:
        return {_first(later, lambda one: _of_number(begin, one)): begin.targets}
    found: dict[int, list[str]] = {}
    for target in begin.targets:
        end_ns = _first(later, lambda one, target=target: _ends_of(begin, one, target))
        found.setdefault(end_ns, []).append(target)
    return {end_ns: tuple(targets) for end_ns, targets in found.items()}


def _first(later: Iterable[Disturbance], ends: Any) -> int:
    return next((one.from_ns for one in later if ends(one)), NEVER_NS)


def _of_number(begin: Disturbance, end: Disturbance) -> bool:
    number = begin.entry["details"].get("number")
    return end.kind in ENDS[begin.kind] and end.entry["details"].get("number") == number


def _ends_of(begin: Disturbance, end: Disturbance, target: str) -> bool:
    if end.kind not in ENDS[begin.kind] or target not in end.targets:
        return False
    if end.kind == "restore":
        by_hand = end.source == LINK_CHANGES  # a restore by hand leaves the values as they are
        only = "cut" if by_hand else end.entry["details"].get(ONLY)
        return only is None or only == ("cut" if begin.kind == "cut" else "link")
    return True
