"""A broker that has lost others: it calls them, and finds its way back into one graph with them.

Whoever finds one again tells it so: if only one side has taken the other for lost, the other has been passed over
without knowing, and asks for what it has missed.

One that reaches nobody at all may be cut off, unless the others have said that they stop: it cannot promise its guests
that a publication is in good hands. It serves its own guests, and keeps TAKEN back until it has found another one, or
for as long as publications are remembered anywhere: then those who are away are not waited for any more, and this
broker is the whole overlay.
"""

from random import Random

from nodes.overlay.base import BrokerName, Note, Peer, Send, Station
from nodes.overlay.broker.calling import LONGEST_S, SELDOM_S, Calling
from nodes.overlay.broker.carrying import Carrying
from nodes.overlay.broker.duties import Duty
from nodes.overlay.broker.lost_peers import LostPeers
from nodes.overlay.reliability.heartbeat import FOUND, QUESTION, beat
from nodes.overlay.topics.base import TopicNode

NEAREST = 3  # brokers that are called besides the seeds and those that were lost, if nobody can be reached
STRANGERS = 0.25  # of these calls go to any broker of all
FALLBACKS = 3  # brokers that are asked for the way in, if no seed knows it


def fallbacks(station: Station, random: Random) -> tuple[int, ...]:
    """Other brokers than the seeds, through which this one can join, too; one without seeds founds the graph."""
    if not station.seeds:
        return ()
    others = [broker.number for broker in station.brokers if broker not in station.seeds]
    return tuple(random.sample(others, min(FALLBACKS, len(others))))


class Apart(Carrying):
    """Links to other brokers, as far as some cannot be made."""

    def __init__(
        self,
        station: Station,
        node: TopicNode,
        by_area: bool,
        linger_s: float,
        retain_s: float,
        repair_s: float,
        random: Random,
    ) -> None:
        super().__init__(station.number, node, by_area, linger_s, retain_s)
        self._numbers = {broker.name: broker.number for broker in station.brokers}
        self._names = {broker.number: broker.name for broker in station.brokers}
        self._nearest = _names((*station.seeds, *station.brokers[:NEAREST]))
        self._retain_s = retain_s
        self._repair_s = repair_s
        self._random = random
        self._up: set[Peer] = set()
        self._stopped: set[Peer] = set()  # said so when they left
        self._lost = LostPeers()
        self._calling = Calling(random)
        self._called: set[Peer] = set()  # there was nothing else to say to them
        self._kept_back: list[Duty] = []
        self._repaired_at = 0.0  # the last loss

    def _after_repair(self) -> float:
        """When to ask for what was missed; not at the same moment as everybody else."""
        return self._now + self._repair_s * (1 + self._random.random())

    def _lose(self, peer: Peer) -> bool:
        """It cannot be reached; whether there is more to be done about it than before."""
        called = peer in self._called
        self._called.discard(peer)
        if self._lost.lose(peer, self._now):
            self._out.append(Note("lost-peer", {"peer": peer}))
            self._ask_for_all(self._after_repair())
            self._calling.begin(self._now)
            return True
        return not called

    def _find(self, peer: Peer) -> None:
        """A link to it stands. If it was lost, or everybody: there may be two graphs, and each has missed something."""
        if self._lost.is_back(peer, repaired_at := self._after_repair()):
            self._out.append(Send(peer, beat(self._number, FOUND)))
            self._reunite(peer, repaired_at)

    def _be_found(self, peer: Peer) -> None:
        """This broker was lost to the peer; if that is news, what both lost is repaired soon."""
        if self._now >= self._repaired_at:
            self._reunite(peer, self._after_repair())

    def _reunite(self, peer: Peer, repaired_at: float) -> None:
        self._repaired_at = repaired_at
        self._ask_for_all(repaired_at)
        self._perform(self._node.on_peer_found(self._numbers[peer], self._now))

    def _is_cut_off(self) -> bool:
        """There are others, somewhere, and none can be reached."""
        return self._lost.any_but(self._stopped) and self._up.isdisjoint(self._numbers)

    def _call_others(self) -> None:
        """One of those that were lost, seldom if nobody would remember anything for them; if all are, others, too."""
        if not self._calling.is_due(self._now):
            return
        lately, ever = self._lost.since(self._now - self._retain_s), self._lost.since(0.0)
        peers, longest_s = (lately, LONGEST_S) if lately else (ever, SELDOM_S)
        if self._is_cut_off():
            peers, longest_s = [*ever, *self._nearest], LONGEST_S
            if self._random.random() < STRANGERS:
                peers = [self._random.choice(sorted(self._numbers))]
        if (peer := self._calling.next_call(peers, self._now, longest_s)) is not None:
            self._called.add(peer)
            self._out.append(Send(peer, beat(self._number, QUESTION)))

    def _keep_back(self) -> None:
        """What guests publish is not answered for while this broker is cut off."""
        if not self._is_cut_off():
            return
        until = self._lost.cut_off(self._now) + self._retain_s
        if self._now >= until:
            return
        for duty in self._duties.idle_of(self._up, until):
            self._duties.hold(duty, until)
            self._kept_back.append(duty)

    def _go_on(self) -> None:
        """Is the overlay repaired? What was published since it broke may not have left this broker."""
        if (since := self._lost.due(self._now)) is None:
            return
        kept_back, self._kept_back = self._kept_back, []
        for duty in kept_back:
            self._duties.release(duty)
        self._publish_again(since)


def _names(brokers: tuple[BrokerName, ...]) -> tuple[Peer, ...]:
    return tuple(dict.fromkeys(broker.name for broker in brokers))
