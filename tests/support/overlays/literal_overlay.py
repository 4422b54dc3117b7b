"""Overlays written literally, one peer, one hop and one comparison at a time: the fast ones are compared with them."""

from collections import deque
from collections.abc import Sequence

from nodes.overlay.skipgraph.multicast import parts
from nodes.protocol.skipgraph_messages import Contact

BITS = 64
Lists = list[
    dict[int, tuple[int | None, int | None]]
]  # for each level and each peer: left and right neighbour


def shared(one: int, other: int) -> int:
    """The number of leading bits that two vectors share."""
    return BITS - (one ^ other).bit_length()


def lists(owners: Sequence[int], vectors: Sequence[int]) -> Lists:
    """The lists of each level, each made by comparing all peers."""
    levels: Lists = []
    for level in range(BITS + 1):
        links = {}
        foreign = False
        for peer, owner in enumerate(owners):
            same = [
                other
                for other in range(len(owners))
                if shared(vectors[owners[other]], vectors[owner]) >= level
            ]
            here = same.index(peer)
            left = same[here - 1] if here else None
            right = same[here + 1] if here + 1 < len(same) else None
            links[peer] = (left, right)
            foreign |= right is not None and owners[right] != owner
        if level and not foreign:
            break
        levels.append(links)
    return levels


def neighbours(levels: Lists, peer: int) -> set[int]:
    """The neighbours of a peer in all levels."""
    return {near for links in levels for near in links[peer] if near is not None}


def flood(levels: Lists, start: int) -> tuple[dict[int, int], int]:
    """Hops of the first copy to each peer, and the number of copies sent."""
    hops = {start: 0}
    sent = 0
    waiting: deque[tuple[int, int | None]] = deque([(start, None)])
    while waiting:
        peer, came_from = waiting.popleft()
        for near in sorted(neighbours(levels, peer) - {came_from}):
            sent += 1
            if near not in hops:
                hops[near] = hops[peer] + 1
                waiting.append((near, peer))
    return hops, sent


def search(levels: Lists, start: int, goal: int) -> list[int]:
    """The path of a search: from the highest level down, as far as possible without passing the target."""
    way = [start]
    for links in reversed(levels):
        while way[-1] != goal:
            left, right = links[way[-1]]
            near = right if goal > start else left
            if near is None or (near > goal if goal > start else near < goal):
                break
            way.append(near)
    return way


def split(levels: Lists, start: int, low: int, high: int) -> dict[int, list[int]]:
    """The paths of a message to all peers from `low` to `high`, split as the message protocol splits it."""
    ways = {start: [start]}
    waiting = [(start, _key(low), _key(high + 1))]
    while waiting:
        peer, first, end = waiting.pop()
        near = [Contact(_key(other), other, 0) for other in neighbours(levels, peer)]
        for contact, begin, until in parts(_key(peer), first, end, near):
            assert contact.node not in ways
            ways[contact.node] = [*ways[peer], contact.node]
            waiting.append((contact.node, begin, until))
    return ways


def _key(peer: int) -> bytes:
    return peer.to_bytes(4, "big")


def wanted_vectors(bits: int, own: int, priority: int) -> list[int]:
    """PSG-TBPS: the vectors of the nodes that should start."""
    space = 2**bits
    count = max(1, int(1 + (space / 4 - 1) * (priority - 1) / 4))
    return [(own + number * (space // count)) % space for number in range(count)]


def support_nodes(
    prefixes: Sequence[int], bits: int, publisher: int, priority: int, take_next: bool
) -> list[int]:
    """PSG-TBPS: the nodes that start, found slot by slot by looking upward through the whole key space."""
    starts = [publisher]
    own = prefixes[publisher]
    in_order = sorted(range(len(prefixes)), key=lambda peer: (prefixes[peer], peer))
    for wanted in wanted_vectors(bits, own, priority)[1:]:
        upward = [peer for peer in in_order if prefixes[peer] >= wanted]
        upward += [peer for peer in in_order if prefixes[peer] < wanted]
        if take_next:
            starts += [peer for peer in upward if peer not in starts][:1]
        else:
            starts += [peer for peer in upward if prefixes[peer] == wanted][:1]
    return starts
