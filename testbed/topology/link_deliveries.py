"""The delivery method of each node's link: its own, its group's, its kind's, the general one, or the lab's."""

from collections.abc import Iterator

from nodes.kinds import EDGE
from testbed.topology.checking import Checking
from testbed.topology.hints import with_article
from testbed.topology.model import Method, NodeKind
from testbed.topology.raw import RawDelivery, RawHardware, RawMember, RawOverlay
from testbed.topology.source_map import Path

_KEY = "delivery"
_HINT = "remove it; a link's method is that of the sensor or subscriber at its end, or the lab's"


def method(raw: RawOverlay | RawDelivery) -> Method:
    """The chosen method as the resolved topology has it."""
    return Method(raw.method, tuple(sorted(raw.parameters.items())))


def of_node(checking: Checking, raw: RawMember) -> Method | None:
    """The method of this node's link; None for nodes that have no link of ours at their end."""
    if raw.kind not in EDGE:
        return None
    file = checking.file
    own: RawHardware = getattr(file.defaults, raw.kind)
    sources = (raw, own, file.defaults)
    chosen = next((source.delivery for source in sources if _written(source)), file.delivery)
    return method(chosen)


def places(checking: Checking) -> Iterator[tuple[Path, RawDelivery]]:
    """Every place of the file that chooses a method and is sound, the lab's first."""
    file = checking.file
    found: list[tuple[Path, RawHardware]] = [(("defaults",), file.defaults)]
    found += [(("defaults", kind.value), getattr(file.defaults, kind)) for kind in NodeKind]
    found += [(("groups", name), group) for name, group in file.groups.items()]
    found += [(("nodes", name), node) for name, node in file.nodes.items()]
    if checking.shaped.sound(_KEY):
        yield (_KEY,), file.delivery
    for path, raw in found:
        if _written(raw) and checking.shaped.sound(*path, _KEY):
            yield (*path, _KEY), raw.delivery


def check_places(checking: Checking) -> None:
    """Only sensors and subscribers have a method of their own."""
    file = checking.file
    for kind in NodeKind:
        _check_kind(checking, ("defaults", kind.value), getattr(file.defaults, kind), kind)
    for section, members in (("groups", file.groups), ("nodes", file.nodes)):
        for name, raw in members.items():
            if checking.shaped.sound(section, name, "kind"):
                _check_kind(checking, (section, name), raw, raw.kind)


def _check_kind(checking: Checking, path: tuple[str, str], raw: RawHardware, kind: str) -> None:
    if kind not in EDGE and _KEY in checking.written(*path):
        checking.key((*path, _KEY), f"{with_article(kind)} has no `{_KEY}` of its own", _HINT)


def _written(raw: RawHardware) -> bool:
    return _KEY in raw.model_fields_set
