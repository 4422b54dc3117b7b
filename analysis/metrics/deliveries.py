"""deliveries: one row for each message and each subscriber that should receive it: delivered, or lost and where."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.inputs.clocks import NONE, Clocks
from analysis.inputs.manifest import Downtimes, was_down
from analysis.inputs.subscriptions import Subscriptions
from analysis.metrics import clock_errors
from analysis.metrics.percentiles import OBSERVED
from analysis.metrics.tables import grouped, schema

# The journey of one message through the overlay: its hops, and where it was lost. Pure.


Array = npt.NDArray[Any]
DELIVERED, LOST = "delivered", "lost"
NEVER_NS = np.iinfo(np.int64).max
NEVER_SENT = "never sent"


class Hop(NamedTuple):
    """A message between two nodes in the captures; None: not seen."""

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
    """The parts of a message's time, on one hop or on its whole path; None: not known."""

    queue_s: float | None
    transmission_s: float | None
    propagation_s: float | None
    retransmission_s: float | None


UNKNOWN_PARTS = Parts(None, None, None, None)


class Outcome(NamedTuple):
    """The outcome of a message for one receiver."""

    status: str
    reason: str | None
    path: list[str] | None
    hops: int | None
    received_ns: int | None
    duplicates: int
    parts: Parts = UNKNOWN_PARTS


class Journey:
    """All hops of one message."""

    def __init__(
        self,
        origin: str,
        hops: Iterable[Hop],
        brokers: Collection[str],
        drops: Collection[tuple[str, str]] = (),
    ) -> None:
        """`drops`: (node, peer) for each full queue that dropped the message, by the node's log."""
        self.origin = origin
        self.brokers = brokers
        self.drops = drops
        self.into: dict[str, list[Hop]] = {}
        self.arrival: dict[str, Hop] = {}  # the hop with a node's first complete copy
        self.sent = False
        for hop in hops:
            self.sent |= hop.src == origin
            self.into.setdefault(hop.dst, []).append(hop)
            if hop.received_last_ns is not None:
                first = self.arrival.get(hop.dst)
                if first is None or _when(hop) < _when(first):
                    self.arrival[hop.dst] = hop

    def outcome(self, receiver: str, own_brokers: Sequence[str] = ()) -> Outcome:
        """Delivered with its path, or lost with the place. `own_brokers`: brokers that could send it on."""
        arrival = self.arrival.get(receiver)
        if arrival is None:
            return Outcome(LOST, self._reason(receiver, own_brokers), None, None, None, 0)
        copies = sum(hop.copies for hop in self.into[receiver])
        path = self._path(arrival)
        whole = path[0].src == self.origin
        return Outcome(
            DELIVERED,
            None,
            [path[0].src, *(hop.dst for hop in path)],
            len(path) if whole else arrival.hops,
            arrival.received_last_ns,
            copies - 1,
            _summed(path) if whole else UNKNOWN_PARTS,
        )

    def _path(self, last: Hop) -> list[Hop]:
        """The hops that end with this one; from the middle on where the captures have a gap.

        Backwards: a node that sent a message as its n-th hop had it by the (n-1)-th, by the first of several. It may
        have received it before, by a shorter path, without sending it there.
        """
        path = [last]
        while path[-1].src != self.origin:
            before = self._before(path[-1])
            if before is None or before in path:
                break
            path.append(before)
        return path[::-1]

    def _before(self, hop: Hop) -> Hop | None:
        """The hop by which the sender received the message."""
        came = [
            one
            for one in self.into.get(hop.src, ())
            if one.hops == hop.hops - 1 and one.received_last_ns is not None
        ]
        return min(came, key=_when) if came else self.arrival.get(hop.src)

    def _reason(self, receiver: str, own_brokers: Sequence[str]) -> str:
        """Where the message was last seen on its path to the receiver."""
        if not self.sent:
            return self._full(self.origin, receiver) or NEVER_SENT
        last = self.into.get(receiver)
        if last:
            return _broken(min(last, key=_begun))
        for own_broker in own_brokers:
            if own_broker in self.arrival:
                return self._full(own_broker, receiver) or f"not forwarded by {own_broker}"
        for own_broker in own_brokers:
            if own_broker in self.into:
                return _broken(min(self.into[own_broker], key=_begun))
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
        """A reason if this node dropped the message: for the receiver, or for a further broker."""
        peers = {peer for dropper, peer in self.drops if dropper == node}
        onward = {peer for peer in peers if peer in self.brokers and peer not in self.arrival}
        return f"queue full at {node}" if receiver in peers or onward else None


def _summed(path: Sequence[Hop]) -> Parts:
    """The parts summed over all hops; unknown if they are unknown on one."""
    legs = [hop[-len(UNKNOWN_PARTS) :] for hop in path]
    if any(part is None for leg in legs for part in leg):
        return UNKNOWN_PARTS
    return Parts(*(sum(part or 0.0 for part in parts) for parts in zip(*legs, strict=True)))


def _when(hop: Hop) -> int:
    return hop.received_last_ns or 0


def _begun(hop: Hop) -> int:
    """Sort key: hops that reached their end first, then the earliest."""
    return hop.received_first_ns or hop.sent_first_ns or 0


# Each reason that `Journey.outcome` and `_follow` give, with the nodes that it names.
REASONS = tuple(
    re.compile(reason)
    for reason in (
        r"lost between (\S+) and (\S+)",
        r"incomplete at (\S+)",
        r"not forwarded by (\S+)",
        r"queue full at (\S+)",
        r"(\S+) was down",
    )
)


def nodes_in_reason(reason: str) -> tuple[str, ...]:
    """The nodes that a reason of a loss names, in their order."""
    found = (pattern.fullmatch(reason) for pattern in REASONS)
    return next((match.groups() for match in found if match), ())


def _broken(hop: Hop) -> str:
    if hop.received_first_ns is not None:
        return f"incomplete at {hop.dst}"
    return f"lost between {hop.src} and {hop.dst}"


def brokers_at(connected: Sequence[tuple[int, str]], published_ns: int) -> list[str]:
    """The brokers of a receiver when a message was published, or later; the latest first."""
    before = [broker for at_ns, broker in connected if at_ns <= published_ns][-1:]
    after = [broker for at_ns, broker in connected if at_ns > published_ns]
    return list(dict.fromkeys(reversed(before + after)))


SCHEMA = schema("""
    id string, receiver string, origin string, topic string, priority int, payload_bytes long, published_ns long,
    status string, reason string, hops int, path array<string>, received_ns long, delay_s double, duplicates long,
    confirmed boolean, handed long, suppressed long, queue_s double, transmission_s double, propagation_s double,
    retransmission_s double, deadline_s double, late boolean, delay_error_s double, out_of_order boolean,
    observed_s double
""")
ROW = "a message and a subscriber that should receive it"
COLUMNS = {
    "receiver": "the subscriber",
    "status": "`delivered` or `lost`",
    "reason": "of a lost one: where it was seen last",
    "hops": "overlay links of the path",
    "path": "nodes from the publisher to the receiver; null if it was lost",
    "received_ns": "all its bytes had passed the receiver's link",
    "duplicates": "further complete copies at the receiver",
    "confirmed": "the receiver's own log reports it",
    "handed": "how often the receiver's log says that its application got it",
    "suppressed": "how often the receiver's node discarded another copy",
    "deadline_s": "deadline of its level; null without one",
    "late": "it came after the deadline; null without one, and if it was lost",
    "delay_error_s": "how far `delay_s` may be off by the clocks of its ends; null if it was lost",
    "out_of_order": "a later publication of the same origin, topic and level came before it; null if it was lost",
    "observed_s": "time for which a delivery could have been seen: from the publication to the end of the run",
}
# What is known before the clocks' errors are added, and deliveries are compared with each other.
FOLLOWED = pa.schema(
    [field for field in SCHEMA if field.name not in (clock_errors.COLUMN, OBSERVED, "out_of_order")]
)
PUBLICATION = ("id", "origin", "topic", "priority", "payload_bytes", "published_ns", "place")
HOP = ("id", *Hop._fields)
RECEPTION = ("id", "receiver", "handed", "suppressed")
DROP = ("id", "dropper", "peer")
FLOW = ("receiver", "origin", "topic", "priority")


class Followed(NamedTuple):
    """What is known of some messages: all of each."""

    publications: pa.Table
    hops: pa.Table
    # How often an application received a message, and discarded a duplicate, by its log.
    receptions: pa.Table
    drops: pa.Table  # by the droppers' logs


def deliveries(
    known: Followed,
    subscriptions: Subscriptions,
    brokers: Collection[str],
    connected: Mapping[str, Sequence[tuple[int, str]]] | None = None,
    down: Downtimes | None = None,
    deadlines: Mapping[int, float] | None = None,
    clocks: Clocks = NONE,
    until_ns: int = 0,
) -> pa.Table:
    """The deliveries of these messages. One is delivered when all its bytes were seen on the receiver's link.

    `subscriptions`: of all nodes. `connected`: receiver -> times and brokers of its links, in order. `down`: downtimes
    of nodes that were stopped. `deadlines`: level -> seconds after which a delivery is late. `clocks`: of nodes that
    have one of their own. `until_ns`: end of the observation; `observed_s` is how long it lasted after the publication.
    All times are already the lab machine's; `delay_error_s` is their error.
    """
    found = _follow(
        known, subscriptions, frozenset(brokers), connected or {}, down or {}, deadlines or {}
    )
    errors = pa.array(clock_errors.of_deliveries(found, clocks), from_pandas=True)
    observed_s = np.maximum(until_ns - found["published_ns"].to_numpy(), 0) / 1e9
    found = found.append_column(SCHEMA.field(clock_errors.COLUMN), errors)
    return found.append_column(SCHEMA.field(OBSERVED), pa.array(observed_s))


def in_order(followed: pa.Table) -> pa.Table:
    """Add `out_of_order`: whether the receiver got a later publication of the same flow first.

    All deliveries of a flow must be there.
    """
    flows = followed.select(FLOW).append_column("row", pa.array(np.arange(followed.num_rows)))
    rows = grouped(flows, FLOW, rows=("row", "list"))["rows"].to_pylist()
    published = followed["published_ns"].to_numpy()
    received = followed["received_ns"].fill_null(NEVER_NS).to_numpy()
    overtaken = np.zeros(followed.num_rows, bool)
    for of_flow in rows:
        mine = np.array(of_flow)
        overtaken[mine] = _overtaken(published[mine], received[mine])
    came = followed["received_ns"].is_valid()
    return followed.append_column(
        SCHEMA.field("out_of_order"),
        pc.if_else(came, pa.array(overtaken), pa.scalar(None, pa.bool_())),
    )


def _overtaken(published: Array, received: Array) -> Array:
    """Which publications arrived after one that was published later; NEVER_NS: it did not arrive."""
    order = np.argsort(published, kind="stable")
    times, came = published[order], received[order]
    # Of each publication and all later ones.
    earliest = np.append(np.minimum.accumulate(came[::-1])[::-1], NEVER_NS)
    later = np.searchsorted(times, times, "right")
    found = np.empty(len(order), bool)
    found[order] = earliest[later] < came
    return found


def _follow(
    known: Followed,
    subscriptions: Subscriptions,
    brokers: Collection[str],
    connected: Mapping[str, Sequence[tuple[int, str]]],
    down: Downtimes,
    deadlines: Mapping[int, float],
) -> pa.Table:
    """The deliveries without the errors of clocks."""
    hops: defaultdict[str, list[Hop]] = defaultdict(list)
    for identity, *values in _rows(known.hops, HOP):
        hops[identity].append(Hop(*values))
    receptions = {
        (identity, receiver): (handed, suppressed)
        for identity, receiver, handed, suppressed in _rows(known.receptions, RECEPTION)
    }
    drops: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for identity, dropper, peer in _rows(known.drops, DROP):
        drops[identity].append((dropper, peer))
    columns: dict[str, list[Any]] = {name: [] for name in FOLLOWED.names}
    for identity, origin, topic, priority, size, logged_ns, place in _rows(
        known.publications, PUBLICATION
    ):
        mine = hops.get(identity, [])
        journey = Journey(origin, mine, brokers, drops.get(identity, ()))
        published_ns = mine[0].published_ns if mine else logged_ns
        for receiver in subscriptions.receivers(topic, priority, place):
            if receiver == origin:
                continue
            own_brokers = brokers_at(connected.get(receiver, ()), published_ns)
            found = journey.outcome(receiver, own_brokers)
            reason, received_ns = found.reason, found.received_ns
            if reason is not None and was_down(down, receiver, published_ns):
                reason = f"{receiver} was down"
            handed, suppressed = receptions.get((identity, receiver), (0, 0))
            delay_s = (received_ns - published_ns) / 1e9 if received_ns is not None else None
            deadline_s = deadlines.get(priority)
            late = None if delay_s is None or deadline_s is None else delay_s > deadline_s
            row = (
                identity,
                receiver,
                origin,
                topic,
                priority,
                size,
                published_ns,
                found.status,
                reason,
                found.hops,
                found.path,
                received_ns,
                delay_s,
                found.duplicates,
                handed > 0,
                handed,
                suppressed,
                *found.parts,
                deadline_s,
                late,
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return pa.table(columns, schema=FOLLOWED)


def _rows(table: pa.Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows as tuples of these columns."""
    return zip(*(table[name].to_pylist() for name in names), strict=True)
