"""Whether brokers stand in their Skip Graph as sorting says. Pure: brokers' own descriptions in, answer out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nodes.overlay.skipgraph.contacts import VECTOR_BITS

Side = str | None
Links = dict[str, list[tuple[Side, Side]]]  # key -> left and right neighbour, level by level


@dataclass(frozen=True, slots=True)
class Standing:
    """What the brokers have of what they should have."""

    keys: int
    wrong: int  # keys with a link that is not the right one, or still changing
    levels: int  # the most that a key has

    @property
    def exact(self) -> bool:
        """Nothing is missing."""
        return self.keys > 0 and not self.wrong


def standing(graphs: Iterable[Mapping[str, Any]]) -> Standing:
    """From the part `graph` of what each broker answers to the question `overlay`."""
    described = list(graphs)
    right = expected(described)
    wrong = 0
    for graph in described:
        for peer in graph["peers"]:
            links = [(left, right_) for left, right_ in peer["links"]]
            wrong += not peer["settled"] or links != right[peer["key"]]
    return Standing(len(right), wrong, max(map(len, right.values()), default=0))


def expected(graphs: Iterable[Mapping[str, Any]]) -> Links:
    """By sorting: in each level the neighbours among keys of a like vector, until a broker is alone with its keys."""
    owners = [
        (peer["key"], number, int(graph["vector"], 16))
        for number, graph in enumerate(graphs)
        for peer in graph["peers"]
    ]
    links: Links = {key: [] for key, _, _ in owners}
    groups = [sorted(owners)]
    for bit in reversed(range(VECTOR_BITS)):
        further = []
        for group in groups:
            keys: list[Side] = [None, *(key for key, _, _ in group), None]
            for place, (key, _, _) in enumerate(group):
                links[key].append((keys[place], keys[place + 2]))
            if len({number for _, number, _ in group}) > 1:
                further += [[one for one in group if one[2] >> bit & 1 == half] for half in (0, 1)]
        groups = further
    return links
