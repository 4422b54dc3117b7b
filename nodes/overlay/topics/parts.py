"""FAN-TBPS: the subscribers' stretch cut into parts, and who of each part serves it. Ours; nobody is asked for it.

Subscriber j of S, in key order, is in part j * k // S: k stretches whose sizes differ by one at most. The helper of a
part is the member with the most neighbours inside it; of several the one nearest to its middle, of two the smaller key.
Members are neighbours if everyone between them shares fewer bits with them than they share with each other: vectors
tell.

Ranges leave no gap: the first begins and the last ends where the topic's subscribers do, and each ends where the next
one begins, at its first member. So a subscriber that is not known lies in exactly one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact


@dataclass(frozen=True, slots=True)
class Part:
    """All keys in [low, high), and who serves them; None: nobody is known there."""

    low: bytes
    high: bytes
    helper: Contact | None


def fan_parts(subscribers: Sequence[Contact], count: int, low: bytes, high: bytes) -> list[Part]:
    """[low, high) in so many parts, by its known subscribers in key order; fewer if these are fewer."""
    size = len(subscribers)
    count = min(size, count)
    begins = [-(-number * size // count) for number in range(count)]
    return [
        Part(
            subscribers[begin].key if begin else low,
            subscribers[end].key if end < size else high,
            choose_helper(subscribers[begin:end]),
        )
        for begin, end in pairwise([*begins, size])
    ]


def parts_around(part: Part, lost: Contact, subscribers: Sequence[Contact]) -> list[Part]:
    """The part again, when its helper has crashed: what lies before it, and what lies behind.

    Within each of the two, nobody's way leads over the one that is lost.
    """
    pieces = []
    for low, high in ((part.low, lost.key), (lost.key + b"\0", part.high)):
        if low < high:
            members = [contact for contact in subscribers if low <= contact.key < high]
            pieces.append(Part(low, high, choose_helper(members) if members else None))
    return pieces


def choose_helper(members: Sequence[Contact]) -> Contact:
    """Who serves these, a stretch in key order."""
    near = neighbours_inside([contact.vector for contact in members])

    def rank(place: int) -> tuple[int, int, int]:
        off_middle = abs(2 * place - len(members) + 1)
        return -near[place], off_middle, place

    return members[min(range(len(members)), key=rank)]


def neighbours_inside(vectors: Sequence[int]) -> list[int]:
    """How many neighbours each has among these, in key order.

    Level after level, a list falls into two by one bit. Who stand side by side in a list and part there, or never part,
    are neighbours.
    """
    near = [0] * len(vectors)
    lists = [list(range(len(vectors)))]
    for bit in reversed(range(VECTOR_BITS)):
        for line in lists:
            for one, other in pairwise(line):
                if (vectors[one] ^ vectors[other]) >> bit & 1:
                    near[one] += 1
                    near[other] += 1
        halves = (
            [place for place in line if vectors[place] >> bit & 1 == side]
            for line in lists
            for side in (0, 1)
        )
        lists = [half for half in halves if len(half) > 1]
    for line in lists:
        for one, other in pairwise(line):
            near[one] += 1
            near[other] += 1
    return near
