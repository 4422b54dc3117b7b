"""Graphs of brokers as the brokers report them (`{"do": "overlay"}`), and as sorting gives them."""

from collections.abc import Iterable, Mapping
from typing import Any

from nodes.protocol.skipgraph_messages import VECTOR_BITS

Links = dict[str, list[list[str | None]]]  # key -> left and right neighbour (keys) in each level


def reported_links(graphs: Iterable[Mapping[str, Any]]) -> Links:
    """The links that the brokers report; only of keys that are settled."""
    return {
        peer["key"]: peer["links"] for graph in graphs for peer in graph["peers"] if peer["settled"]
    }


def sorted_links(graphs: Iterable[Mapping[str, Any]]) -> Links:
    """The links that the brokers should have.

    Each level has the keys whose vectors begin alike, in order. A key has levels until only its own node is left.
    """
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
