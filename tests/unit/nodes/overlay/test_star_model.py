"""The star against a simple model: the subscriptions decide which peers get a publication."""

from dataclasses import replace
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nodes.overlay.base import Refuse, Send, Station
from nodes.overlay.star import star
from nodes.protocol.interests import parse
from nodes.protocol.wire import Kind, Message

peers = st.sampled_from(["s1", "s2", "c1", "c2", "c3"])
topics = st.sampled_from(["rain", "tilt", "alert"])
texts = st.sampled_from(["rain", "tilt", "alert", "{3}alert", "{1 0-5}alert", "{2 4-9}rain"])


class StarModel(RuleBasedStateMachine):
    """A broker with some links; the model is the set of (peer, interest)."""

    def __init__(self) -> None:
        super().__init__()
        self.star = star(Station("b1", 1), {}, Random(0))
        self.up: set[str] = set()
        self.wanted: set[tuple[str, str]] = set()
        self.now = 0.0

    def connected(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.up)))

    @rule(peer=peers)
    def a_link_comes_up(self, peer: str) -> None:
        if peer not in self.up:
            assert self.star.on_link_up(peer, self.now) == []
            self.up.add(peer)

    @precondition(lambda self: self.up)
    @rule(data=st.data())
    def a_link_goes_down_with_its_subscriptions(self, data: st.DataObject) -> None:
        peer = self.connected(data)
        assert self.star.on_link_down(peer, self.now) == []
        self.up.discard(peer)
        self.wanted = {(other, topic) for other, topic in self.wanted if other != peer}

    @precondition(lambda self: self.up)
    @rule(data=st.data(), topic=texts)
    def a_subscription_is_confirmed(self, data: st.DataObject, topic: str) -> None:
        peer = self.connected(data)
        actions = self.star.on_message(peer, Message(Kind.SUBSCRIBE, topic=topic), self.now)
        assert actions == [Send(peer, Message(Kind.SUBSCRIBED, origin=1, topic=topic))]
        self.wanted.add((peer, topic))

    @precondition(lambda self: self.up)
    @rule(data=st.data(), topic=texts)
    def a_subscription_is_cancelled(self, data: st.DataObject, topic: str) -> None:
        peer = self.connected(data)
        assert self.star.on_message(peer, Message(Kind.UNSUBSCRIBE, topic=topic), self.now) == []
        self.wanted.discard((peer, topic))

    @precondition(lambda self: self.up)
    @rule(
        data=st.data(),
        topic=topics,
        hops=st.integers(1, 9),
        priority=st.integers(1, 5),
        payload=st.binary(max_size=9),
        place=st.lists(st.integers(0, 9), max_size=1).map(tuple),
    )
    def a_publication_goes_to_each_subscriber_once_and_never_back(
        self,
        data: st.DataObject,
        topic: str,
        hops: int,
        priority: int,
        payload: bytes,
        place: tuple[int, ...],
    ) -> None:
        peer = self.connected(data)
        message = Message(
            Kind.PUBLISH, priority, hops=hops, topic=topic, payload=payload, place=place
        )
        actions = self.star.on_message(peer, message, self.now)
        assert all(isinstance(action, Send) for action in actions)
        receivers = [action.peer for action in actions if isinstance(action, Send)]
        assert len(receivers) == len(set(receivers))
        wanting = {other for other, text in self.wanted if parse(text).wants(message)}
        assert set(receivers) == wanting - {peer}
        assert all(
            action.message == replace(message, hops=hops + 1)
            for action in actions
            if isinstance(action, Send)
        )

    @precondition(lambda self: self.up)
    @rule(data=st.data(), kind=st.sampled_from([Kind.HELLO, Kind.SUBSCRIBED]))
    def messages_that_only_brokers_send_are_refused(self, data: st.DataObject, kind: Kind) -> None:
        peer = self.connected(data)
        (action,) = self.star.on_message(peer, Message(kind), self.now)
        assert isinstance(action, Refuse)
        assert action.peer == peer

    @invariant()
    def a_star_has_no_deadlines(self) -> None:
        self.now += 1
        assert self.star.next_deadline() is None
        assert self.star.on_deadline(self.now) == []


TestStarModel = StarModel.TestCase
TestStarModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
