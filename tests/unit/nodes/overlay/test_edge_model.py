"""A node at the edge against a simple model, while links break at any moment and lose the messages on them."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nodes.overlay.base import (
    Acknowledged,
    Action,
    BrokerName,
    Deliver,
    Drop,
    Duplicate,
    Send,
    Station,
)
from nodes.overlay.edge import Edge
from nodes.overlay.reliability.custody import acknowledgement, has_custody
from nodes.overlay.reliability.heartbeat import ANSWER, QUESTION, heartbeat_message
from nodes.overlay.reliability.settings import ReliabilitySettings
from nodes.protocol.wire import CUSTODY, REPEATED, Kind, Message, encode, message_id

SETTINGS = ReliabilitySettings(custody_from=3, heartbeat_s=5.0, retain_s=600.0)
OTHER = 9  # the node whose publications this one receives


class EdgeModel(RuleBasedStateMachine):
    """One node that publishes and subscribes; brokers acknowledge as the rules require."""

    def __init__(self) -> None:
        super().__init__()
        brokers = (BrokerName("b1", 1), BrokerName("b2", 2))
        self.edge = Edge(Station("c1", 3, brokers), SETTINGS, ("rain",))
        self.now = 0.0
        self.broker: str | None = None
        self.on_the_way: list[Message] = []  # to the broker, on this link
        self.published: list[int] = []  # with custody
        self.at_brokers: set[int] = set()
        self.acknowledged: set[int] = set()
        self.best_effort_lost_or_there = 0
        self.delivered: list[int] = []
        self.handed_over: set[int] = set()

    def act(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send(peer, message):
                    encode(message)
                    if has_custody(message) or message.control:
                        assert peer == self.broker, "sent over a link that is not up"
                    if self.broker is not None:
                        self.on_the_way.append(message)
                case Deliver(message):
                    self.delivered.append(message.message_id)
                case Acknowledged(identity):
                    assert identity not in self.acknowledged, "acknowledged twice"
                    self.acknowledged.add(identity)
                case Drop(peer, _):
                    assert peer == self.broker
                    self.break_link()
                case Duplicate(message):
                    assert message.message_id in self.delivered

    def break_link(self) -> None:
        self.broker = None
        self.on_the_way.clear()

    @precondition(lambda self: self.broker is None)
    @rule(peer=st.sampled_from(["b1", "b2"]))
    def a_link_comes_up_and_all_pending_messages_go_over_it(self, peer: str) -> None:
        self.broker = peer
        self.act(self.edge.on_link_up(peer, self.now))
        fresh = [m for m in self.on_the_way if has_custody(m) and not m.flags & REPEATED]
        assert {m.message_id for m in fresh} == set(self.published) - self.acknowledged
        assert len(fresh) == len({m.message_id for m in fresh})
        levels = [m.priority for m in fresh]
        assert levels == sorted(levels, reverse=True)
        repeated = {m.message_id for m in self.on_the_way if m.flags & REPEATED}
        assert repeated <= self.acknowledged

    @precondition(lambda self: self.broker is not None)
    @rule()
    def a_link_breaks_with_the_messages_on_it(self) -> None:
        peer, self.broker = self.broker, None
        self.on_the_way.clear()
        assert peer is not None
        self.act(self.edge.on_link_down(peer, self.now))

    @rule(level=st.integers(1, 5))
    def the_application_publishes(self, level: int) -> None:
        identity = message_id(3, len(self.published) + self.best_effort_lost_or_there + 1)
        if level >= 3:
            self.published.append(identity)
        else:
            self.best_effort_lost_or_there += 1
        message = Message(Kind.PUBLISH, level, origin=3, message_id=identity, topic="tilt")
        self.act(self.edge.publish(message, self.now))

    @precondition(lambda self: self.on_the_way)
    @rule(count=st.integers(1, 5))
    def some_messages_arrive(self, count: int) -> None:
        arrived, self.on_the_way = self.on_the_way[:count], self.on_the_way[count:]
        for message in arrived:
            if has_custody(message):
                self.at_brokers.add(message.message_id)
            if message.kind is Kind.SUBSCRIBE:
                confirmation = Message(Kind.SUBSCRIBED, topic=message.topic)
                self.act(self.edge.on_message(self.broker or "", confirmation, self.now))

    @precondition(lambda self: self.broker is not None and self.at_brokers)
    @rule(data=st.data())
    def a_broker_acknowledges_a_publication_perhaps_again(self, data: st.DataObject) -> None:
        identity = data.draw(st.sampled_from(sorted(self.at_brokers)))
        answer = acknowledgement(1, Message(Kind.PUBLISH, message_id=identity))
        self.act(self.edge.on_message(self.broker or "", answer, self.now))
        assert identity in self.acknowledged

    @precondition(lambda self: self.broker is not None)
    @rule(
        counter=st.integers(1, 6) | st.integers(2000, 2003),
        level=st.integers(1, 5),
        again=st.booleans(),
    )
    def a_broker_delivers_a_publication_perhaps_again(
        self, counter: int, level: int, again: bool
    ) -> None:
        identity = message_id(OTHER, counter * 6 + level)
        flags = (CUSTODY if level >= 3 else 0) | (REPEATED if again else 0)
        message = Message(
            Kind.PUBLISH, level, origin=OTHER, flags=flags, message_id=identity, topic="rain"
        )
        before = len(self.on_the_way)
        self.act(self.edge.on_message(self.broker or "", message, self.now))
        self.handed_over.add(identity)
        answers = self.on_the_way[before:]
        assert answers == ([acknowledgement(3, message)] if level >= 3 else [])

    @precondition(lambda self: self.broker is not None)
    @rule(payload=st.sampled_from([QUESTION, ANSWER]))
    def a_heartbeat_arrives(self, payload: bytes) -> None:
        self.act(self.edge.on_message(self.broker or "", heartbeat_message(1, payload), self.now))

    @rule(seconds=st.floats(0, 40))
    def time_passes(self, seconds: float) -> None:
        until = self.now + seconds
        while (deadline := self.edge.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self.act(self.edge.on_deadline(self.now))
        self.now = until

    @invariant()
    def publications_are_pending_until_they_are_acknowledged(self) -> None:
        assert self.edge.pending == len(set(self.published) - self.acknowledged)

    @invariant()
    def the_application_gets_each_publication_once_if_it_is_not_older_than_the_window(self) -> None:
        with_custody = [each for each in self.delivered if (each & 0xFFFFFFFF) % 6 >= 3]
        assert len(with_custody) == len(set(with_custody))
        assert set(self.delivered) == self.handed_over

    @invariant()
    def the_node_knows_its_broker(self) -> None:
        assert self.edge.broker == self.broker

    def teardown(self) -> None:
        """In the end a link stays up, and the outbox becomes empty."""
        if self.broker is None:
            self.a_link_comes_up_and_all_pending_messages_go_over_it("b2")
        self.time_passes(0)
        sent = {m.message_id for m in self.on_the_way if has_custody(m)} | self.at_brokers
        assert set(self.published) - self.acknowledged <= sent
        for identity in set(self.published) - self.acknowledged:
            copy = replace(Message(Kind.PUBLISH), message_id=identity)
            self.act(self.edge.on_message(self.broker or "", acknowledgement(1, copy), self.now))
        assert self.edge.pending == 0
        assert self.acknowledged == set(self.published)


TestEdgeModel = EdgeModel.TestCase
TestEdgeModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
