"""Who takes part in a topic, as each of its publishers knows it: for methods that send to nodes they pick themselves.

Whoever has inserted a key says so to all publishers (PRESENT, by multicast to their stretch), and again now and then;
one who leaves says ABSENT; a new publisher asks its neighbours in the topic for theirs (ROSTER, answered by PRESENT).
Who has not been heard of for a long time is forgotten. A roster may be old: it only decides whom to send to besides
those whom the multicast reaches anyway.
"""

from collections.abc import Iterable
from enum import IntEnum

from nodes.overlay.skipgraph.codec import read_contacts, write_contacts
from nodes.overlay.skipgraph.contacts import Contact
from nodes.wire import WireError

MOST_IN_ONE = 200  # contacts in a message


class RosterWord(IntEnum):
    """One byte in front of contacts; distinct from `words.Word`."""

    PRESENT = 101
    ABSENT = 102
    ROSTER = 103  # what do you know? The one contact is the asker's


def say_contacts(word: RosterWord, contacts: Iterable[Contact]) -> list[bytes]:
    """To bytes, in as many messages as are needed."""
    every = tuple(contacts)
    return [
        bytes([word]) + write_contacts(every[at : at + MOST_IN_ONE])
        for at in range(0, len(every), MOST_IN_ONE)
    ]


def is_roster_word(data: bytes) -> bool:
    return data[:1] in [bytes([word]) for word in RosterWord]


def hear_contacts(data: bytes) -> tuple[RosterWord, tuple[Contact, ...]]:
    """From bytes; WireError if they are none."""
    if not is_roster_word(data):
        raise WireError(f"{data[:20]!r} is no word about participants")
    return RosterWord(data[0]), read_contacts(data[1:])


class Roster:
    """The participants of one topic and when each was last heard of."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._heard: dict[bytes, tuple[Contact, float]] = {}

    def add(self, contact: Contact, now: float) -> None:
        self._heard[contact.key] = contact, now

    def drop(self, contact: Contact) -> None:
        self._heard.pop(contact.key, None)

    def drop_node(self, node: int) -> None:
        self._heard = {k: entry for k, entry in self._heard.items() if entry[0].node != node}

    def known(self, now: float) -> list[Contact]:
        """Those heard of lately, in key order."""
        self._heard = {
            key: entry for key, entry in self._heard.items() if now - entry[1] <= self._forget_s
        }
        return [self._heard[key][0] for key in sorted(self._heard)]
