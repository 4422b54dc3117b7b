"""A method's own nodes in virtual time: one topic comes and goes, all other nodes of the overlay stand (`settings`)."""

from functools import partial
from random import Random
from typing import Any, cast

from nodes.overlay.tbps import TOPIC_METHODS
from nodes.overlay.tbps.base import (
    Action,
    Deliver,
    GraphedNode,
    Place,
    Send,
    Subscribed,
    TopicNode,
    Withheld,
)
from nodes.wire import Kind, Message, message_id
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.network import Network
from testbed.converged import population
from testbed.protocol_runs.counting import Record, kind_of
from testbed.protocol_runs.plan import Stopping
from testbed.protocol_runs.settings import setting
from testbed.protocol_runs.standing import topic_name

FORM_NS = 5 * SECOND  # after the last one has come: all levels are right
DRAIN_NS = SECOND  # at the end, for what is under way
MS = SECOND // 1000
INTRODUCERS = 4


class TopicRun:
    """One run; `record` holds what was seen."""

    def __init__(self, method: str, plan: Stopping, multicast: str = "split") -> None:
        people = population(
            plan.publishers, plan.subscribers, plan.nodes, plan.random("people").getrandbits(32)
        )
        if people.topics < 2:
            raise ValueError(
                f"one topic is all of {plan.nodes:,} nodes: give at least {2 * people.size:,}"
            )
        topic = people.topics // 2
        members: list[int] = people.owners[topic * people.size :][: people.size].tolist()
        self._topic = topic_name(topic)
        self._members = members
        self._publishers = members[: plan.publishers]
        self._subscribers = members[plan.publishers :]
        self._setting = setting(method, people, topic, plan, multicast)
        self._standing = self._setting.graph.standing
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
            watch=self._sent,
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
        self.network.tell(node, lambda core, now: core.advertise(self._topic, now))

    def _come(self, node: int) -> None:
        self.network.tell(node, lambda core, now: core.subscribe(self._topic, now))

    def _go(self, node: int) -> None:
        self.record.left(node, self._now_ms)
        self.network.tell(node, lambda core, now: core.unsubscribe(self._topic, now))

    def _publish(self, node: int) -> None:
        self._counters[node] += 1
        identity = message_id(node, self._counters[node])
        message = Message(
            Kind.PUBLISH, 1, hops=0, origin=node, message_id=identity, topic=self._topic
        )
        self.record.made(identity, self._now_ms)
        self.network.tell(node, partial(_publish, message))

    def _make(self, number: int) -> TopicNode:
        setting = self._setting
        known = setting.graph.place(number)
        stands = known is not None
        introducers = () if stands else tuple(self._random.sample(self._standing, INTRODUCERS))
        place = Place(number, introducers, vector=setting.graph.vector(number))
        parameters = setting.of_standing if stands else setting.of_coming
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
