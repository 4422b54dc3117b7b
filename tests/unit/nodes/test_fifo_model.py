"""First in, first out, against a list: also over broken connections and a full queue."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nodes.delivery.base import Queued
from nodes.delivery.fifo import Fifo

LIMIT = 50


class FifoModel(RuleBasedStateMachine):
    """The model is the list of messages not yet with the kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.fifo = Fifo({"limit_bytes": LIMIT})
        self.model: list[bytes] = []
        self.out = False  # the first of the model is given out

    @rule(data=st.binary(max_size=30), priority=st.integers(1, 5))
    def a_message_is_taken_if_it_fits(self, data: bytes, priority: int) -> None:
        fits = sum(map(len, self.model)) + len(data) <= LIMIT
        problem = self.fifo.offer(data, priority, 0.0)
        assert (problem is None) == fits
        if fits:
            self.model.append(data)
        else:
            assert f"{len(data)} bytes do not fit" in str(problem)

    @rule()
    def the_oldest_goes_first_and_stays_until_it_has_left(self) -> None:
        expected = self.model[0] if self.model else None
        assert self.fifo.next_chunk(0.0) == expected
        assert self.fifo.next_chunk(0.0) == expected
        self.out = expected is not None

    @rule(unsent=st.integers(0, 10_000))
    def it_has_left(self, unsent: int) -> None:
        self.fifo.on_progress(unsent, 0.0)
        if self.out:
            self.model.pop(0)
            self.out = False

    @precondition(lambda self: self.out)
    @rule()
    def what_was_given_out_when_the_link_broke_comes_first_again(self) -> None:
        self.fifo.on_link_lost(0.0)
        self.out = False

    @invariant()
    def the_counts_are_right(self) -> None:
        assert self.fifo.queued == Queued(len(self.model), sum(map(len, self.model)))
        assert self.fifo.next_deadline() is None


TestFifoModel = FifoModel.TestCase
TestFifoModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
