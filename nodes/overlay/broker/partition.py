"""Partitions: a broker that cannot reach others probes them, and joins one graph with them again.

A broker that reaches a lost one again reports that to it (FOUND). If only one side had lost the other, the other side
was excluded without knowing it, and asks for the publications that it has missed.

A broker that reaches no other one may be cut off, unless the others have announced that they stop: it cannot promise
its clients that a publication is safe. It serves its own clients, and holds acknowledgements back until it has found
another broker, or for as long as any broker retains publications. After that it waits for the others no more, and is
the whole overlay.
"""

from collections.abc import Sequence
from math import inf
from random import Random

from nodes.overlay.base import BrokerName, Peer, Station
from nodes.overlay.broker.context import Context
from nodes.overlay.broker.local import LocalBroker, earliest
from nodes.overlay.broker.pending import PendingAck
from nodes.overlay.reliability.heartbeat import FOUND, heartbeat_message
from nodes.overlay.topics.base import TopicNode

NEAREST = 3  # brokers to probe besides the seeds and the lost ones, if none can be reached
ANY_BROKER = 0.25  # share of these probes that go to any broker of all
FIRST_S, LONGEST_S = 2.0, 16.0  # between two probes; each pause is twice as long as the one before
SELDOM_S = 64.0  # the longest pause, if there is little hope left
UNNOTICED_S = 30.0  # the longest time until a broker knows that it is cut off


class LostPeers:
    """Brokers that could not be reached, and the repair after one of them is reached again.

    Then this broker may have been the one that was cut off: publications of its clients have not left it meanwhile. It
    publishes them again, once the overlay has had time to repair itself; until then it acknowledges none of them.
    """

    def __init__(self) -> None:
        self._since: dict[Peer, float] = {}
        self._cut_off_since: float | None = None
        self._repaired_at: float | None = None
        self._from = 0.0  # publications since then are published again

    def any_but(self, known: set[Peer]) -> bool:
        """Whether brokers besides these are lost."""
        return not known.issuperset(self._since)

    def add(self, peer: Peer, now: float) -> bool:
        """The broker is lost; whether it was not lost before."""
        new = peer not in self._since
        self._since.setdefault(peer, now)
        return new

    def since(self, moment: float) -> list[Peer]:
        """The brokers that were lost at that moment or later, and are not back."""
        return [peer for peer, lost_at in self._since.items() if lost_at >= moment]

    def cut_off(self, now: float) -> float:
        """No other broker can be reached; return since when."""
        if self._cut_off_since is None:
            self._cut_off_since = now
        return self._cut_off_since

    def on_reached(self, peer: Peer, repaired_at: float) -> bool:
        """There is a link to the peer; whether it was lost, or all were. The repair is complete at `repaired_at`."""
        losses = [self._since.pop(peer, None), self._cut_off_since]
        moments = [moment - UNNOTICED_S for moment in losses if moment is not None]
        if not moments:
            return False
        self._cut_off_since = None
        if self._repaired_at is not None:
            moments.append(self._from)
        self._from, self._repaired_at = min(moments), repaired_at
        return True

    def next_deadline(self) -> float | None:
        return self._repaired_at

    def due(self, now: float) -> float | None:
        """If the repair is complete, the moment since which publications are published again; None: nothing to do."""
        if self._repaired_at is None or now < self._repaired_at:
            return None
        self._repaired_at = None
        return self._from


class Probes:
    """Probes of brokers that could not be reached: one at a time, with growing pauses.

    No event reports that a cut link is whole again. So a broker that has lost others probes them in turn; as soon as
    one of them answers, the graph becomes one again.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._pause = FIRST_S
        self._at: float | None = None
        self._probed: dict[Peer, float] = {}

    def begin(self, now: float) -> None:
        """Another broker was lost: begin with short pauses."""
        self._pause = FIRST_S
        moment = self._after(now)
        self._at = moment if self._at is None else min(self._at, moment)

    def _after(self, now: float) -> float:
        """Add jitter, because other brokers may have lost the same ones at the same moment."""
        return now + self._pause * (0.75 + 0.5 * self._random.random())

    def is_due(self, now: float) -> bool:
        return self._at is not None and now >= self._at

    def next_deadline(self) -> float | None:
        return self._at

    def choose(
        self, peers: Sequence[Peer], now: float, longest_s: float = LONGEST_S
    ) -> Peer | None:
        """The one of these whose last probe is the oldest; None: there is none to probe any more."""
        self._at = None
        if not peers:
            return None
        peer = min(peers, key=lambda each: self._probed.get(each, -inf))
        self._probed[peer] = now
        self._pause = min(2 * self._pause, longest_s)
        self._at = self._after(now)
        return peer


class Partition:
    """The other brokers, as far as this one cannot reach them."""

    def __init__(
        self,
        station: Station,
        node: TopicNode,
        local: LocalBroker,
        retain_s: float,
        repair_s: float,
        random: Random,
    ) -> None:
        self._number = station.number
        self._numbers = {broker.name: broker.number for broker in station.brokers}
        self._nearest = _names((*station.seeds, *station.brokers[:NEAREST]))
        self._node = node
        self._links = local.links
        self._pending = local.pending
        self._recovery = local.recovery
        self._retain_s = retain_s
        self._repair_s = repair_s
        self._random = random
        self._stopped: set[Peer] = set()  # announced that they stop
        self._lost = LostPeers()
        self._probes = Probes(random)
        self._only_probed: set[Peer] = set()  # got nothing but probes
        self._held: list[PendingAck] = []
        self._repaired_at = 0.0  # of the last loss

    def after_repair(self, now: float) -> float:
        """When to ask for missed publications; with jitter, so that brokers do not ask at the same moment."""
        return now + self._repair_s * (1 + self._random.random())

    # Links to other brokers

    def on_link_up(self, context: Context, peer: Peer) -> None:
        """If the peer was lost, or all were, there may be two graphs, each of which has missed publications."""
        self._stopped.discard(peer)
        if self._lost.on_reached(peer, repaired_at := self.after_repair(context.now)):
            context.send(peer, heartbeat_message(self._number, FOUND))
            self._reunite(context, peer, repaired_at)

    def on_found(self, context: Context, peer: Peer) -> None:
        """The peer had lost this broker. If that is new, plan the repair of both sides."""
        if context.now >= self._repaired_at:
            self._reunite(context, peer, self.after_repair(context.now))

    def _reunite(self, context: Context, peer: Peer, repaired_at: float) -> None:
        self._repaired_at = repaired_at
        self._recovery.ask_for_all(repaired_at)
        context.perform(self._node.on_peer_found(self._numbers[peer], context.now))

    def on_stopping(self, peer: Peer) -> None:
        """The peer has announced that it stops: then this broker is not cut off from it."""
        self._stopped.add(peer)

    def on_unreachable(self, context: Context, peer: Peer) -> bool:
        """The shell cannot make a link to the peer; whether the overlay has to repair itself because of it."""
        probed = peer in self._only_probed
        self._only_probed.discard(peer)
        if self._lost.add(peer, context.now):
            context.note("lost-peer", peer=peer)
            self._recovery.ask_for_all(self.after_repair(context.now))
            self._probes.begin(context.now)
            return True
        return not probed

    def on_sent(self, peer: Peer) -> None:
        """The peer is sent another message than a probe."""
        self._only_probed.discard(peer)

    def _is_cut_off(self) -> bool:
        """Whether there are other brokers, and none can be reached."""
        return self._lost.any_but(self._stopped) and self._links.up.isdisjoint(self._numbers)

    # Acknowledgements

    def hold_acknowledgements(self, now: float) -> None:
        """While this broker is cut off, it does not acknowledge what its clients publish."""
        if not self._is_cut_off():
            return
        until = self._lost.cut_off(now) + self._retain_s
        if now >= until:
            return
        for pending in self._pending.idle_of(self._links.up, until):
            self._pending.hold(pending, until)
            self._held.append(pending)

    # Time

    def next_deadline(self) -> float | None:
        return earliest(self._lost.next_deadline(), self._probes.next_deadline())

    def repaired(self, now: float) -> float | None:
        """If the repair is complete, release acknowledgements. Return the moment since which to publish again."""
        if (since := self._lost.due(now)) is None:
            return None
        held, self._held = self._held, []
        for pending in held:
            self._pending.release(pending)
        return since

    def probe(self, context: Context) -> None:
        """Probe a lost broker, less often if no broker retains publications for it; if all are lost, others, too."""
        if not self._probes.is_due(context.now):
            return
        lately, ever = self._lost.since(context.now - self._retain_s), self._lost.since(0.0)
        peers, longest_s = (lately, LONGEST_S) if lately else (ever, SELDOM_S)
        if self._is_cut_off():
            peers, longest_s = [*ever, *self._nearest], LONGEST_S
            if self._random.random() < ANY_BROKER:
                peers = [self._random.choice(sorted(self._numbers))]
        if (peer := self._probes.choose(peers, context.now, longest_s)) is not None:
            self._only_probed.add(peer)
            self._links.ask(context, peer)


def _names(brokers: tuple[BrokerName, ...]) -> tuple[Peer, ...]:
    return tuple(dict.fromkeys(broker.name for broker in brokers))
