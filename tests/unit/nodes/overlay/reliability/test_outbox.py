"""The outbox of a sensor, against a simple model: bounded, and no message is dropped for a less urgent one."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.overlay.reliability.outbox import (
    MAX_REPEATED,
    MAX_REPEATED_BYTES,
    RETRY_S,
    Outbox,
    RecentlyAcknowledged,
    size_of,
)
from nodes.protocol.wire import Kind, Message

LIMIT = 5000


def message(identity: int, level: int, size: int) -> Message:
    return Message(Kind.PUBLISH, level, message_id=identity, payload=bytes(size))


class OutboxModel(RuleBasedStateMachine):
    """The model is a dict of messages, with the time of the last transmission and the timeout of its ACK."""

    def __init__(self) -> None:
        super().__init__()
        self.pending = Outbox(LIMIT)
        self.model: dict[int, Message] = {}
        self.again: dict[int, tuple[float, float]] = {}  # next retransmission, and timeout after it
        self.now = 0.0
        self.count = 0

    @rule(level=st.integers(1, 5), size=st.integers(0, 2500))
    def a_message_is_stored_unless_evicting_less_urgent_ones_does_not_suffice(
        self, level: int, size: int
    ) -> None:
        self.count += 1
        new = message(self.count, level, size)
        stored, evicted = self.pending.add(new)
        below = [each for each in self.model.values() if each.priority < level]
        free = LIMIT - sum(map(size_of, self.model.values()))
        assert stored == (free + sum(map(size_of, below)) >= size_of(new))
        expected = sorted(below, key=lambda each: (each.priority, -each.message_id))[: len(evicted)]
        assert list(evicted) == expected
        if evicted:
            assert free + sum(map(size_of, evicted[:-1])) < size_of(new), (
                "one message too many was evicted"
            )
        for each in evicted:
            del self.model[each.message_id]
            self.again.pop(each.message_id, None)
        if stored:
            self.model[new.message_id] = new

    @rule(data=st.data())
    def a_message_is_acknowledged(self, data: st.DataObject) -> None:
        identity = data.draw(st.integers(1, max(self.count, 1)))
        assert self.pending.remove(identity) == self.model.pop(identity, None)
        self.again.pop(identity, None)

    @rule()
    def all_messages_are_sent_over_a_new_link(self) -> None:
        all_of_them = self.pending.most_urgent_first()
        order = sorted(self.model.values(), key=lambda each: (-each.priority, each.message_id))
        assert all_of_them == order
        for each in all_of_them:
            self.pending.sent(each.message_id, self.now)
            self.again[each.message_id] = (self.now + RETRY_S, 2 * RETRY_S)

    @rule()
    def the_link_is_lost(self) -> None:
        self.pending.link_lost()
        self.again.clear()
        assert self.pending.next_deadline() is None

    @rule(seconds=st.floats(0, 200))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        due = {identity for identity, (at, _) in self.again.items() if at <= self.now}
        deadline = self.pending.next_deadline()
        assert not due or (deadline is not None and deadline <= self.now)
        assert {each.message_id for each in self.pending.due(self.now)} == due
        for identity in due:
            _, wait = self.again[identity]
            self.again[identity] = (self.now + wait, 2 * wait)

    @invariant()
    def it_holds_what_the_model_holds_within_its_limit(self) -> None:
        assert len(self.pending) == len(self.model)
        assert all(identity in self.pending for identity in self.model)
        assert sum(map(size_of, self.model.values())) <= LIMIT


TestOutboxModel = OutboxModel.TestCase
TestOutboxModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 30)), max_size=120))
@settings(deadline=None)
def test_recently_acknowledged_messages_are_bounded_in_number_bytes_and_time(
    acknowledged: list[tuple[int, float]],
) -> None:
    recent, now, acknowledged_at = RecentlyAcknowledged(retain_s=100), 0.0, {}
    for identity, (size, seconds) in enumerate(acknowledged):
        now += seconds
        recent.add(message(identity, 5, size), now)
        acknowledged_at[identity] = now
        newest = recent.newest(now)
        assert len(newest) <= MAX_REPEATED
        assert sum(map(size_of, newest)) <= MAX_REPEATED_BYTES
        assert all(now - acknowledged_at[each.message_id] < 100 for each in newest)
        ids = [each.message_id for each in newest]
        assert ids == sorted(ids)
