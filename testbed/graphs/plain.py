"""A topology as a tree: the core, the routers at it, and the nodes; those that are alike stand for each other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from testbed.links.values import NOTHING, written
from testbed.topology.model import Node, NodeKind, Profile, Shape, Topology

CORE = "core"
MOST_WORDS = 3  # topics that are named


@dataclass(frozen=True, slots=True)
class Twig:
    """One node, or several of a group that have the same kind of link to the same place; `behind` hang on each."""

    label: str
    count: int
    kind: NodeKind
    profile: str
    topics: tuple[str, ...]
    behind: tuple["Twig", ...] = ()

    @property
    def named(self) -> str:
        """`siren`, or `slopes × 200`."""
        return self.label if self.count == 1 else f"{self.label} × {self.count}"

    @property
    def about(self) -> str:
        """What it is, and what it wants."""
        more = len(self.topics) - MOST_WORDS
        topics = ", ".join(self.topics[:MOST_WORDS]) + (f", {more} more" if more > 0 else "")
        return f"{self.kind}: {topics}" if topics else str(self.kind)


def twigs(topology: Topology) -> tuple[Twig, ...]:
    """What hangs on the core, in file order."""
    behind: dict[str | None, list[Node]] = {}
    for node in topology.nodes:
        behind.setdefault(node.router, []).append(node)
    return _alike(behind.get(None, ()), behind)


def _alike(nodes: Iterable[Node], behind: Mapping[str | None, Sequence[Node]]) -> tuple[Twig, ...]:
    found: dict[Twig, list[str]] = {}
    for node in nodes:
        hanging = _alike(behind.get(node.name, ()), behind)
        one = Twig(node.group or node.name, 1, node.kind, node.profile, node.wanted_topics, hanging)
        found.setdefault(one, []).append(node.name)
    return tuple(
        replace(one, label=names[0]) if len(names) == 1 else replace(one, count=len(names))
        for one, names in found.items()
    )


def profiles_in_use(topology: Topology) -> dict[str, str]:
    """Each with what it does, in one line."""
    used = dict.fromkeys(node.profile for node in topology.nodes)
    return {name: in_words(topology.profile(name)) for name in used}


def in_words(profile: Profile) -> str:
    """Up and down, once if they are the same."""
    up, down = _shape(profile.up), _shape(profile.down)
    return up if up == down else f"up {up}; down {down}"


def _shape(shape: Shape) -> str:
    values = {name: text for name, text in written(asdict(shape)).items() if text != NOTHING}
    told = [values.get("rate", "not limited")]
    if "delay" in values:
        jitter = f" ± {values['jitter']}" if "jitter" in values else ""
        told.append(f"{values['delay']}{jitter}")
    if "loss" in values:
        told.append(f"{values['loss']} lost")
    return ", ".join(told)


def document(topology: Topology) -> dict[str, Any]:
    """For programs: every node, and every link with where it leads."""
    return {
        "topology": topology.name,
        "overlay": topology.overlay.method,
        "nodes": [
            {
                "name": node.name,
                "number": node.number,
                "kind": node.kind,
                "group": node.group,
                "topics": list(node.wanted_topics),
                "homes": list(node.homes),
            }
            for node in topology.nodes
        ],
        "links": [
            {"node": node.name, "to": node.router or CORE, "profile": node.profile}
            for node in topology.nodes
        ],
        "profiles": profiles_in_use(topology),
    }
