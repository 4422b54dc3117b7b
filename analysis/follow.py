"""Follows one message through the overlay: who had it from whom, and where it was lost. Pure."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

DELIVERED, LOST = "delivered", "lost"
NEVER_SENT = "never sent"


class Hop(NamedTuple):
    """What the captures show of a message between two nodes; None: not seen."""

    src: str
    dst: str
    hops: int
    published_ns: int
    sent_first_ns: int | None
    received_first_ns: int | None
    received_last_ns: int | None  # all of it
    copies: int
    queue_s: float | None = None
    transmission_s: float | None = None
    propagation_s: float | None = None
    retransmission_s: float | None = None


class Parts(NamedTuple):
    """What a message's time went into, on one hop or on all of its way; None: not known."""

    queue_s: float | None
    transmission_s: float | None
    propagation_s: float | None
    retransmission_s: float | None


UNKNOWN_PARTS = Parts(None, None, None, None)


class Outcome(NamedTuple):
    """What became of a message for one receiver."""

    status: str
    reason: str | None
    path: list[str] | None
    hops: int | None
    received_ns: int | None
    duplicates: int
    parts: Parts = UNKNOWN_PARTS


class Journey:
    """All that is known of one message's way."""

    def __init__(
        self,
        origin: str,
        hops: Iterable[Hop],
        brokers: Collection[str],
        drops: Collection[tuple[str, str]] = (),
    ) -> None:
        """`drops`: (node, peer) for each queue that had no room for the message, by the node's own account."""
        self.origin = origin
        self.brokers = brokers
        self.drops = drops
        self.into: dict[str, list[Hop]] = {}
        self.arrival: dict[str, Hop] = {}  # the hop that brought a node its first whole copy
        self.sent = False
        for hop in hops:
            self.sent |= hop.src == origin
            self.into.setdefault(hop.dst, []).append(hop)
            if hop.received_last_ns is not None:
                first = self.arrival.get(hop.dst)
                if first is None or _when(hop) < _when(first):
                    self.arrival[hop.dst] = hop

    def outcome(self, receiver: str, homes: Sequence[str] = ()) -> Outcome:
        """Delivered with its path, or lost with the place. `homes`: brokers that could have sent it to the receiver."""
        arrival = self.arrival.get(receiver)
        if arrival is None:
            return Outcome(LOST, self._reason(receiver, homes), None, None, None, 0)
        copies = sum(hop.copies for hop in self.into[receiver])
        way = self._way(arrival)
        whole = way[0].src == self.origin
        return Outcome(
            DELIVERED,
            None,
            [way[0].src, *(hop.dst for hop in way)],
            len(way) if whole else arrival.hops,
            arrival.received_last_ns,
            copies - 1,
            _summed(way) if whole else UNKNOWN_PARTS,
        )

    def _way(self, last: Hop) -> list[Hop]:
        """The hops that ended with this one; from the middle on where the captures have a gap.

        Backwards: a node that sent a message as its n-th hop had it by the (n-1)-th, of several by the first. It may
        have had it before, by a shorter way, without sending it there.
        """
        way = [last]
        while way[-1].src != self.origin:
            before = self._before(way[-1])
            if before is None or before in way:
                break
            way.append(before)
        return way[::-1]

    def _before(self, hop: Hop) -> Hop | None:
        """By which hop its sender had the message."""
        came = [
            one
            for one in self.into.get(hop.src, ())
            if one.hops == hop.hops - 1 and one.received_last_ns is not None
        ]
        return min(came, key=_when) if came else self.arrival.get(hop.src)

    def _reason(self, receiver: str, homes: Sequence[str]) -> str:
        """Where the message was last seen on its way to the receiver."""
        if not self.sent:
            return self._full(self.origin, receiver) or NEVER_SENT
        last = self.into.get(receiver)
        if last:
            return _broken(min(last, key=_begun))
        for home in homes:
            if home in self.arrival:
                return self._full(home, receiver) or f"not forwarded by {home}"
        for home in homes:
            if home in self.into:
                return _broken(min(self.into[home], key=_begun))
        stuck = [
            hop
            for dst, hops in self.into.items()
            if dst in self.brokers and dst not in self.arrival
            for hop in hops
        ]
        if stuck:
            return _broken(min(stuck, key=lambda hop: hop.hops))
        arrivals = [hop for dst, hop in self.arrival.items() if dst in self.brokers]
        reached = [hop.dst for hop in sorted(arrivals, key=_when, reverse=True)] or [self.origin]
        full = [reason for node in reached if (reason := self._full(node, receiver))]
        return full[0] if full else f"not forwarded by {reached[0]}"

    def _full(self, node: str, receiver: str) -> str | None:
        """Whether this node's queue kept the message from the receiver: its own queue, or that to a further broker."""
        peers = {peer for dropper, peer in self.drops if dropper == node}
        onward = {peer for peer in peers if peer in self.brokers and peer not in self.arrival}
        return f"queue full at {node}" if receiver in peers or onward else None


def _summed(way: Sequence[Hop]) -> Parts:
    """What the time went into on all hops; not known if it is not on one of them."""
    legs = [hop[-len(UNKNOWN_PARTS) :] for hop in way]
    if any(part is None for leg in legs for part in leg):
        return UNKNOWN_PARTS
    return Parts(*(sum(part or 0.0 for part in parts) for parts in zip(*legs, strict=True)))


def _when(hop: Hop) -> int:
    return hop.received_last_ns or 0


def _begun(hop: Hop) -> int:
    """Hops that reached their end count first, then the earliest."""
    return hop.received_first_ns or hop.sent_first_ns or 0


def _broken(hop: Hop) -> str:
    if hop.received_first_ns is not None:
        return f"incomplete at {hop.dst}"
    return f"lost between {hop.src} and {hop.dst}"


def homes_at(connected: Sequence[tuple[int, str]], published_ns: int) -> list[str]:
    """The brokers to which a receiver was linked when a message was published, or later; the latest first."""
    before = [broker for at_ns, broker in connected if at_ns <= published_ns][-1:]
    after = [broker for at_ns, broker in connected if at_ns > published_ns]
    return list(dict.fromkeys(reversed(before + after)))
