"""First in, first out, against a list: also over broken connections and a full queue."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.delivery.base import Chunk, Dropped, Queued
from nodes.delivery.fifo import Fifo

LIMIT = 50


class FifoModel(RuleBasedStateMachine):
    """The model is the list of messages not yet with the kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.fifo = Fifo({"limit_bytes": LIMIT})
        self.model: list[tuple[bytes, bool]] = []  # and whether it is a control message
        self.out = False  # the first of the model is given out

    @rule(data=st.binary(max_size=30), priority=st.integers(1, 5))
    def a_publication_is_taken_if_it_fits(self, data: bytes, priority: int) -> None:
        taken = sum(len(other) for other, control in self.model if not control)
        fits = taken + len(data) <= LIMIT
        dropped = self.fifo.offer(data, priority, 0.0)
        if fits:
            assert dropped == ()
            self.model.append((data, False))
        else:
            reason = f"{len(data)} bytes do not fit: {taken} of {LIMIT} are taken"
            assert dropped == (Dropped(data, priority, reason),)

    @rule(data=st.binary(max_size=30))
    def a_control_message_is_taken_always(self, data: bytes) -> None:
        assert self.fifo.offer(data, 1, 0.0, control=True) == ()
        self.model.append((data, True))

    @rule()
    def the_oldest_goes_first_and_stays_until_it_has_left(self) -> None:
        expected = Chunk(self.model[0][0]) if self.model else None
        assert self.fifo.next_chunk(0.0) == expected
        assert self.fifo.next_chunk(0.0) == expected
        self.out = expected is not None

    @rule(unsent=st.integers(0, 10_000))
    def it_has_left(self, unsent: int) -> None:
        self.fifo.on_progress(unsent, 0.0)
        if self.out:
            self.model.pop(0)
            self.out = False

    @rule()
    def after_a_broken_link_what_was_given_out_comes_first_again_and_control_is_forgotten(
        self,
    ) -> None:
        self.fifo.on_link_lost(0.0)
        self.out = False
        self.model = [entry for entry in self.model if not entry[1]]

    @invariant()
    def the_counts_are_right(self) -> None:
        assert self.fifo.queued == Queued(len(self.model), sum(len(data) for data, _ in self.model))
        assert self.fifo.next_deadline() is None


TestFifoModel = FifoModel.TestCase
TestFifoModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
