"""PSG-TBPS: which nodes search for the subscribers at the same time as the publisher (Kita 2025, 5.3.1).

As many bits of the membership vectors are looked at as give each participant of the topic one of its own. In this space
the start nodes stand evenly, from the publisher's own vector upward: it alone at priority 1, a quarter of the space
at 5. `next`: a vector that is nobody's, or serves already, is replaced by the next one upward, cyclically; `exact`: it
is dropped. Where the thesis says "until m comes again", exactly so many slots are taken as it counts: with an interval
that does not divide the space, all would serve otherwise.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil, floor, log2

from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact

SUPPORT = ("next", "exact")
SUPPORT_FROM = ("publishers", "participants")


def space_bits(participants: int) -> int:
    """How many bits of the vectors are looked at."""
    return max(1, ceil(log2(max(participants, 1))))


def start_count(bits: int, priority: int) -> int:
    """How many nodes start: the publisher alone at priority 1, a quarter of the space at 5."""
    return max(1, floor(1 + ((1 << bits) / 4 - 1) * (priority - 1) / 4))


def slots(bits: int, own: int, priority: int) -> list[int]:
    """The vectors that should start, the publisher's own one first."""
    space, count = 1 << bits, start_count(bits, priority)
    return [(own + number * (space // count)) % space for number in range(count)]


def support_nodes(
    own: Contact, serving: Sequence[Contact], participants: int, priority: int, support: str
) -> list[Contact]:
    """Who starts besides the publisher `own`; of equal vectors the smaller key first.

    `serving` are those who may, `participants` counts all of the topic.
    """
    bits = space_bits(participants)
    shift = VECTOR_BITS - bits
    line = sorted((contact.vector >> shift, contact.key, contact) for contact in serving)
    taken = {own.key}
    found = []
    for slot in slots(bits, own.vector >> shift, priority)[1:]:
        begin = bisect_left(line, (slot, b""), key=lambda entry: entry[:2])
        for prefix, key, contact in line[begin:] + line[:begin]:
            if support == "exact" and prefix != slot:
                break
            if key not in taken:
                taken.add(key)
                found.append(contact)
                break
            if support == "exact":
                break
    return found
