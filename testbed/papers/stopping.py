"""The experiment of Banno 2013 on stopping: messages over time while subscribers come and go.

The nodes run their own protocol in virtual time, in an overlay too large to be formed by messages. Most of its nodes
are background: each begins at its place in a converged graph, and is created when a message first reaches it. The
nodes of the measured topic join, publish and leave by messages, as in a real overlay.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.skipgraph.node import MOST_IDLE_TICKS, PERIOD_S
from nodes.overlay.skipgraph.ring import SUCCESSORS
from nodes.overlay.skipgraph.table import KnownPlace
from nodes.overlay.topics.base import (
    Action,
    Deliver,
    GraphedNode,
    Place,
    Send,
    Subscribed,
    TopicNode,
    Withheld,
)
from nodes.overlay.topics.keys import Role, topic_key
from nodes.overlay.topics.scribe.node import Scribe
from nodes.overlay.topics.scribe.routing import node_key
from nodes.overlay.topics.sg import SgTbps
from nodes.protocol.skipgraph_codec import FORMS
from nodes.protocol.skipgraph_messages import Carry, Contact, Multicast, Notify
from nodes.protocol.wire import Kind, Message, message_id
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.network import Network
from testbed.converged import Population, converge, population
from testbed.converged.graph import NO_NODE

# What happens in the experiment on stopping, and when (Banno 2013): pure, for every method the same.


@dataclass(frozen=True, slots=True)
class Stopping:
    """One run. All subscribers are there, leave one by one, come back one by one, and leave again."""

    publishers: int
    nodes: int
    seed: int
    trial: int = 0
    subscribers: int = 100
    interval_ms: int = 200  # between two publications of a publisher
    step_ms: int = 10  # between two subscribers that come or go
    rest_ms: int = 1_000  # so long all stay, and all are gone
    delay_ms: int = 10  # of a message
    bin_ms: int = 50

    def random(self, what: str) -> Random:
        """Chance, the same for all methods."""
        return Random(f"{self.seed} {self.trial} {self.publishers} {what}")

    @property
    def moving_ms(self) -> int:
        """Until all have come, or gone."""
        return self.subscribers * self.step_ms

    @property
    def empty_ms(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two times without a subscriber: from the last that leaves."""
        first = self.rest_ms + self.moving_ms - self.step_ms
        again = first + 2 * (self.moving_ms + self.rest_ms)
        joins = self.rest_ms + self.moving_ms + self.rest_ms
        return (first, joins), (again, self.end_ms)

    @property
    def end_ms(self) -> int:
        return 4 * self.rest_ms + 3 * self.moving_ms

    def moves(self) -> list[tuple[int, int, bool]]:
        """Moment in ms, which subscriber, whether it comes; without the subscribers of the beginning."""
        random = self.random("moves")
        found = []
        for turn, comes in enumerate((False, True, False)):
            begin = self.rest_ms + turn * (self.moving_ms + self.rest_ms)
            order = random.sample(range(self.subscribers), self.subscribers)
            found += [
                (begin + rank * self.step_ms, subscriber, comes)
                for rank, subscriber in enumerate(order)
            ]
        return found

    def publications(self) -> list[tuple[int, int]]:
        """Moment in microseconds and publisher: each at its own regular times."""
        random = self.random("publications")
        first = [random.randrange(self.interval_ms * 1000) for _ in range(self.publishers)]
        return sorted(
            (moment, publisher)
            for publisher, begin in enumerate(first)
            for moment in range(begin, self.end_ms * 1000, self.interval_ms * 1000)
        )


# Nodes of a converged Skip Graph; the place of each is computed on demand.


def topic_name(topic: int) -> str:
    """Topics in the order of their numbers, as a population has them."""
    return f"topic {topic:08}"


class ConvergedGraph:
    """Nodes with one key each: `owners` in the order of their keys, `key_of` is the key at a place of that order."""

    def __init__(
        self,
        owners: NDArray[np.int32],
        vectors: NDArray[np.uint64],
        key_of: Callable[[int], bytes],
    ) -> None:
        self._owners = owners
        self._vectors = vectors
        self._key_of = key_of
        self._place_of_node = np.full(len(vectors), NO_NODE)
        self._place_of_node[owners] = np.arange(len(owners))
        self._left, self._right = converge(owners, vectors)
        self._contacts: dict[int, Contact] = {}

    @property
    def nodes(self) -> list[int]:
        """The nodes in the graph."""
        found: list[int] = self._owners.tolist()
        return found

    def vector(self, node: int) -> int:
        return int(self._vectors[node])

    def place(self, node: int) -> KnownPlace | None:
        """The place of a node; None if it is not in the graph."""
        at = int(self._place_of_node[node])
        if at == NO_NODE:
            return None
        count = len(self._owners)
        behind = (self._contact((at + 2 + more) % count) for more in range(SUCCESSORS))
        levels = []
        sides = zip(self._left[1:, at].tolist(), self._right[1:, at].tolist(), strict=True)
        for left, right in sides:
            if left == right == NO_NODE:
                break
            levels.append((self._neighbour(left), self._neighbour(right)))
        return KnownPlace(
            self._contact(at).key,
            self._contact((at - 1) % count),
            self._contact((at + 1) % count),
            tuple(behind),
            tuple(levels),
        )

    def _neighbour(self, place: int) -> Contact | None:
        return None if place == NO_NODE else self._contact(place)

    def _contact(self, place: int) -> Contact:
        if place not in self._contacts:
            node = int(self._owners[place])
            self._contacts[place] = Contact(self._key_of(place), node, self.vector(node))
        return self._contacts[place]


def all_topics_but(absent: int, participants: Population) -> ConvergedGraph:
    """The graph by keys of topics, without the members of the topic `absent`: those join by messages."""
    first = absent * participants.size
    peers = np.delete(np.arange(len(participants.owners)), np.s_[first : first + participants.size])

    def key_of(place: int) -> bytes:
        peer = int(peers[place])
        topic, rank = divmod(peer, participants.size)
        role = Role.PUBLISHER if rank < participants.publishers else Role.SUBSCRIBER
        return topic_key(topic_name(topic), role, int(participants.owners[peer]))

    return ConvergedGraph(participants.owners[peers], participants.vectors, key_of)


def all_nodes(participants: Population) -> ConvergedGraph:
    """The graph of all nodes by their numbers, whatever topics they are in, as in Scribe."""
    numbers = np.arange(len(participants.vectors), dtype=np.int32)
    return ConvergedGraph(numbers, participants.vectors, node_key)


# How the nodes of each method begin the experiment: which are in the graph already, and which maintain it.
#
# SG-TBPS: the topic's nodes join by messages; all other nodes are background and take no part in the topic. Background
# nodes answer and forward messages, but do not check their neighbours: each check would wake the neighbours, and the
# whole overlay would run, only to find that nothing has changed. The topic's nodes check their neighbours all the time,
# however long nothing changes.
#
# Scribe: all nodes are background, the topic's too, since their keys are their numbers and no topic changes them. So a
# node that is the root of a topic knows it at once, and the graph needs no maintenance. Every node does what a topic
# needs, at Scribe's own pace: nodes on the route of a join become part of the tree and refresh it.


NEVER_S = 1e9  # between two ticks of a passive node
NO_CARE_S = MOST_IDLE_TICKS * PERIOD_S  # the longest idle period whose ticks are those of all


@dataclass(frozen=True, slots=True)
class Setting:
    """The graph as it is before the topic comes, and the parameters of the nodes in it."""

    method: str
    graph: ConvergedGraph
    of_background: Mapping[str, Any]
    of_joining: Mapping[str, Any] = field(default_factory=dict)


def setting(
    method: str, participants: Population, topic: int, plan: Stopping, multicast: str
) -> Setting:
    """Stopped publishers keep a publication for one interval, in case a subscriber is joining. `sg.HOLD_S` is
    longer: what they send then was made when there was no subscriber.
    """
    if method == Scribe.method:
        return Setting(method, all_nodes(participants), of_background={"idle_period_s": NO_CARE_S})
    chosen = {"multicast": multicast, "hold_s": plan.interval_ms / 1000}
    return Setting(
        method,
        all_topics_but(topic, participants),
        of_background={**chosen, "period_s": NEVER_S},
        of_joining={**chosen, "idle_period_s": PERIOD_S},
    )


# Messages of a run by time and kind, and whether every publication reached the subscribers it was due to.


PUBLICATION, TOPIC_CONTROL, CONTROL = "publication", "topic control", "control"
KINDS = (PUBLICATION, TOPIC_CONTROL, CONTROL)
NEVER = float("inf")
STAY_MS = 900  # a message to a node that has just left must find its way: up to 620 ms were seen
_MESSAGE_KINDS = {
    number for number, (kind, _) in FORMS.items() if kind in (Carry, Notify, Multicast)
}


def kind_of(message: Message) -> str:
    """A publication; a control message of a topic (stop, go, join, leave, queries); or the graph's own maintenance."""
    if message.kind is Kind.PUBLISH:
        return PUBLICATION
    return TOPIC_CONTROL if message.payload[0] in _MESSAGE_KINDS else CONTROL


@dataclass(slots=True)
class _Publication:
    made: float
    receivers: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Record:
    """What is noted while it runs; times in ms from the beginning."""

    plan: Stopping
    messages: Counter[tuple[int, str]] = field(default_factory=Counter)
    publications: dict[int, _Publication] = field(default_factory=dict)
    withheld: set[int] = field(default_factory=set)
    stays: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # confirmed, left

    def sent(self, kind: str, at_ms: float, messages: int = 1) -> None:
        self.messages[int(at_ms // self.plan.bin_ms), kind] += messages

    def made(self, identity: int, at_ms: float) -> None:
        self.publications[identity] = _Publication(at_ms)

    def confirmed(self, subscriber: int, at_ms: float) -> None:
        self.stays.setdefault(subscriber, []).append((at_ms, NEVER))

    def left(self, subscriber: int, at_ms: float) -> None:
        """It may leave before it was confirmed."""
        if (stays := self.stays.get(subscriber)) and stays[-1][1] == NEVER:
            stays[-1] = stays[-1][0], at_ms

    def due_and_lost(self) -> tuple[int, int]:
        """Deliveries to subscribers that were confirmed before it was made, and stayed long enough to get it."""
        due = lost = 0
        for publication in self.publications.values():
            until = publication.made + STAY_MS
            for subscriber, stays in self.stays.items():
                if any(begin <= publication.made and until < end for begin, end in stays):
                    due += 1
                    lost += subscriber not in publication.receivers
        return due, lost

    def rows(self, method: str) -> Iterator[dict[str, Any]]:
        """A row for each kind and bin, empty ones too."""
        plan = self.plan
        for kind in KINDS:
            for place in range(plan.end_ms // plan.bin_ms):
                yield {
                    "method": method,
                    "publishers": plan.publishers,
                    "nodes": plan.nodes,
                    "trial": plan.trial,
                    "kind": kind,
                    "t_ms": place * plan.bin_ms,
                    "messages": self.messages[place, kind],
                }

    def totals(self, method: str) -> dict[str, Any]:
        """One row for the run."""
        due, lost = self.due_and_lost()
        return {
            "method": method,
            "publishers": self.plan.publishers,
            "nodes": self.plan.nodes,
            "trial": self.plan.trial,
            "publications": len(self.publications),
            "withheld": len(self.withheld),
            "expected": due,
            "lost": lost,
        }


# A method's own nodes in virtual time: the nodes of one topic come and go, all others are background (`Setting`).


FORM_NS = 5 * SECOND  # after the last one has come: all levels are right
DRAIN_NS = SECOND  # at the end, for what is under way
MS = SECOND // 1000
INTRODUCERS = 4


class TopicRun:
    """One run; `record` holds what was seen."""

    def __init__(self, method: str, plan: Stopping, multicast: str = "split") -> None:
        participants = population(
            plan.publishers, plan.subscribers, plan.nodes, plan.random("people").getrandbits(32)
        )
        if participants.topics < 2:
            raise ValueError(
                f"one topic is all of {plan.nodes:,} nodes: give at least {2 * participants.size:,}"
            )
        topic = participants.topics // 2
        members: list[int] = participants.owners[topic * participants.size :][
            : participants.size
        ].tolist()
        self._topic = topic_name(topic)
        self._members = members
        self._publishers = members[: plan.publishers]
        self._subscribers = members[plan.publishers :]
        self._setting = setting(method, participants, topic, plan, multicast)
        self._background = self._setting.graph.nodes
        self._plan = plan
        self._random = plan.random("nodes")
        self.record = Record(plan)
        self._loop = Loop()
        self.network = Network(
            self._loop,
            self._make,
            lambda action: action.node if isinstance(action, Send) else None,
            plan.delay_ms * MS,
            self._notice,
            on_sent=self._sent,
        )
        self._begin = 0
        self._counters = dict.fromkeys(self._publishers, 0)

    def run(self) -> Record:
        """Let the topic form, then all that is planned happen."""
        self._form()
        self._begin = self._loop.now
        self.record.messages.clear()
        plan = self._plan
        for moment, publisher in plan.publications():
            self._at(moment * 1000, self._publish, self._publishers[publisher])
        for moment, subscriber, comes in plan.moves():
            move = self._come if comes else self._go
            self._at(moment * MS, move, self._subscribers[subscriber])
        self._loop.run(self._begin + plan.end_ms * MS + DRAIN_NS)
        return self.record

    def _form(self) -> None:
        plan = self._plan
        for rank, node in enumerate(self._members):
            move = self._advertise if node in self._counters else self._come
            self._at(rank * plan.step_ms * MS, move, node)
        self._loop.run(len(self._members) * plan.step_ms * MS + FORM_NS)

    def _at(self, after_ns: int, call: Any, node: int) -> None:
        self._loop.at(self._begin + after_ns, call, node)

    # What nodes do

    def _advertise(self, node: int) -> None:
        self.network.call(node, lambda core, now: core.advertise(self._topic, now))

    def _come(self, node: int) -> None:
        self.network.call(node, lambda core, now: core.subscribe(self._topic, now))

    def _go(self, node: int) -> None:
        self.record.left(node, self._now_ms)
        self.network.call(node, lambda core, now: core.unsubscribe(self._topic, now))

    def _publish(self, node: int) -> None:
        self._counters[node] += 1
        identity = message_id(node, self._counters[node])
        message = Message(
            Kind.PUBLISH, 1, hops=0, origin=node, message_id=identity, topic=self._topic
        )
        self.record.made(identity, self._now_ms)
        self.network.call(node, partial(_publish, message))

    def _make(self, number: int) -> TopicNode:
        setting = self._setting
        known = setting.graph.place(number)
        is_background = known is not None
        introducers = (
            () if is_background else tuple(self._random.sample(self._background, INTRODUCERS))
        )
        place = Place(number, introducers, vector=setting.graph.vector(number))
        parameters = setting.of_background if is_background else setting.of_joining
        random = Random(f"{self._plan.seed} {number}")
        core = TOPIC_METHODS[setting.method](place, parameters, random)
        if known is not None:
            cast(GraphedNode, core).graph.begin_at([known], self._loop.seconds)
        return core

    # What is seen of it

    @property
    def _now_ms(self) -> float:
        return (self._loop.now - self._begin) / MS

    def _sent(self, message: Message) -> None:
        self.record.sent(kind_of(message), self._now_ms)

    def _notice(self, node: int, action: Action, now: float) -> None:
        match action:
            case Deliver(message):
                self.record.publications[message.message_id].receivers.add(node)
            case Withheld(message):
                self.record.withheld.add(message.message_id)
            case Subscribed():
                self.record.confirmed(node, self._now_ms if self._begin else 0.0)


def _publish(message: Message, core: TopicNode, now: float) -> list[Action]:
    return core.publish(message, now)


METHODS = (SgTbps.method, Scribe.method)
Rows = list[dict[str, Any]]


def measure_stopping(
    publishers: int,
    nodes: int,
    seed: int,
    trial: int = 0,
    methods: Sequence[str] = METHODS,
    multicast: str = "split",
    **more: int,
) -> tuple[Rows, Rows]:
    """Messages by kind and time, and totals, each method by its own protocol.

    `multicast` is that of SG-TBPS; `more` are other values of `Stopping`.
    """
    plan = Stopping(publishers, nodes, seed, trial, **more)
    rows: Rows = []
    totals: Rows = []
    for method in methods:
        record = TopicRun(method, plan, multicast).run()
        rows += record.rows(method)
        totals.append(record.totals(method))
    return rows, totals
