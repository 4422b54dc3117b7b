"""Who takes part in a topic, as each of its publishers knows it: for methods that send to nodes they pick themselves.

Whoever has inserted a key says so to all publishers (PRESENT, by multicast to their stretch), and again now and then;
one who leaves says ABSENT, and for one who dies his left neighbour does. A new publisher asks the publishers beside it
for theirs (ROSTER, answered by PRESENT), and if there are none, all subscribers; whom it has asked passes on for a
while what it hears of later. Who has not been heard of for a long time is forgotten. Only who stands among the
publishers hears these words, and has a roster. A roster may be old: nobody's delivery may depend on it.
"""

from nodes.protocol.skipgraph_messages import Contact

LATE_S = 10.0  # words do not take longer: an older PRESENT may come in such a time after ABSENT


class Roster:
    """The participants of one topic and when each was last heard of."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._heard: dict[bytes, tuple[Contact, float]] = {}
        self._gone: dict[bytes, float] = {}

    def add(self, contact: Contact, now: float) -> bool:
        """Whether it is new. One who has just gone is not believed to be here."""
        if now - self._gone.get(contact.key, -LATE_S) < LATE_S:
            return False
        new = contact.key not in self._heard
        self._heard[contact.key] = contact, now
        return new

    def drop(self, contact: Contact, now: float) -> bool:
        """Whether it was known."""
        self._gone = {key: at for key, at in self._gone.items() if now - at < LATE_S}
        self._gone[contact.key] = now
        return self._heard.pop(contact.key, None) is not None

    def drop_node(self, node: int) -> None:
        self._heard = {k: entry for k, entry in self._heard.items() if entry[0].node != node}

    def known(self, now: float) -> list[Contact]:
        """Those heard of lately, in key order."""
        self._heard = {
            key: entry for key, entry in self._heard.items() if now - entry[1] <= self._forget_s
        }
        return [self._heard[key][0] for key in sorted(self._heard)]
