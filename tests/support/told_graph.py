"""Graphs of brokers as they tell them themselves (`{"do": "overlay"}`), beside what sorting gives."""

from collections.abc import Iterable, Mapping
from typing import Any

from nodes.protocol.skipgraph_messages import VECTOR_BITS

Links = dict[str, list[list[str | None]]]  # key -> left and right neighbour (keys) in each level


def told_links(graphs: Iterable[Mapping[str, Any]]) -> Links:
    """As the brokers have them; only keys that stand."""
    return {
        peer["key"]: peer["links"] for graph in graphs for peer in graph["peers"] if peer["settled"]
    }


def sorted_links(graphs: Iterable[Mapping[str, Any]]) -> Links:
    """As they should be: each level has those whose vectors begin alike, in the order of their keys, and a key has
    levels until nobody but its own node is left."""
    vectors = {peer["key"]: int(graph["vector"], 16) for graph in graphs for peer in graph["peers"]}
    links: Links = {key: [] for key in vectors}
    for key, found in links.items():
        for level in range(VECTOR_BITS + 1):
            shift = VECTOR_BITS - level
            alike = sorted(k for k, v in vectors.items() if v >> shift == vectors[key] >> shift)
            place = alike.index(key)
            after = alike[place + 1] if place + 1 < len(alike) else None
            found.append([alike[place - 1] if place else None, after])
            if all(vectors[other] == vectors[key] for other in alike):
                break
    return links
