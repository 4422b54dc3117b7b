"""What fails in a scenario, and is mended: the events crash, stop, restart, cut and heal of the file."""

from testbed.topology.checking import Checking
from testbed.topology.ends import check_beginning
from testbed.topology.hints import with_article
from testbed.topology.model import Fault, FaultKind, Node
from testbed.topology.raw import RawEvent, RawFault
from testbed.topology.selection import Selection
from testbed.topology.source_map import Path
from testbed.topology.units import DURATION

_UNDONE = {  # by what it is mended -> by what it comes about, and how that is called
    FaultKind.RESTART: ((FaultKind.CRASH, FaultKind.STOP), "has crashed or stopped"),
    FaultKind.HEAL: ((FaultKind.CUT,), "has a link that was cut"),
}


class Faults:
    """The faults of one file, gathered event by event."""

    def __init__(self, checking: Checking, nodes: tuple[Node, ...]) -> None:
        self._checking = checking
        self._nodes = Selection(checking, nodes, _no_process)
        self._links = Selection(checking, nodes)
        self._found: list[tuple[Path, Fault]] = []

    def add(self, path: Path, event: RawEvent, duration_s: float) -> None:
        """The fault of this event; whatever is wrong with it goes to the problems."""
        kind = next(kind for kind in FaultKind if getattr(event, kind) is not None)
        raw = getattr(event, kind)
        inner = (*path, kind.value)
        share = raw.share if isinstance(raw, RawFault) else None
        if share == 0:
            self._checking.value(
                (*inner, "share"), "a share of zero hits nobody", "remove the event instead"
            )
        selection = self._links if kind.of_links else self._nodes
        nodes = selection.of((*inner, "nodes"), raw.nodes)
        clear = self._checking.shaped.sound("scenario", "duration")
        if clear and self._checking.shaped.sound(*path):
            check_beginning(self._checking, path, event.at, duration_s)
        names = tuple(node.name for node in nodes)
        self._found.append((inner, Fault(event.at, kind, names, 1.0 if share is None else share)))

    def in_order(self) -> tuple[Fault, ...]:
        """All faults in the order of time; to mend what was never broken is a problem."""
        self._found.sort(key=lambda found: found[1].at_s)
        broken: dict[FaultKind, set[str]] = {kind: set() for kind in FaultKind}
        for path, fault in self._found:
            broken[fault.kind].update(fault.nodes)
            if fault.kind not in _UNDONE or not self._checking.shaped.sound("scenario"):
                continue
            causes, how = _UNDONE[fault.kind]
            before = set().union(*(broken[cause] for cause in causes))
            if fault.nodes and before.isdisjoint(fault.nodes):
                self._checking.key(
                    path,
                    f"none of these nodes {how} before {DURATION.write(fault.at_s)}",
                    f"add an event with `{causes[0]}` before it, or remove this one",
                )
        return tuple(fault for _, fault in self._found)


def _no_process(node: Node) -> tuple[str, str] | None:
    if node.ours:
        return None
    return (
        f"{node.name} is {with_article(node.kind)}; only brokers, sensors and subscribers fail so",
        "`cut` its link instead",
    )
