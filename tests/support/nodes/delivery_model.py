"""Every delivery method against a list, under any order of offers, progress, acknowledgements, pauses and broken links.

Each message has a number in its first bytes, so that the test recognises it wherever it comes out.
"""

from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nodes.delivery import METHODS
from nodes.delivery.base import Assembler, Chunk, Queued

LIMIT = 6000
STEPS = settings(max_examples=25, stateful_step_count=50, deadline=None)


class DeliveryModel(RuleBasedStateMachine):
    """The model: the messages that wait, by level; each is a number and its bytes."""

    method: ClassVar[str]
    parameters: ClassVar[dict[str, Any]]

    def __init__(self) -> None:
        super().__init__()
        parameters = {"limit_bytes": LIMIT, **self.parameters}
        self.scheduler = METHODS[self.method].scheduler(parameters)
        self.assembler: Assembler
        self.waiting: dict[int, list[bytes]] = {level: [] for level in range(1, 6)}
        self.control: list[bytes] = []
        self.upkeep: list[bytes] = []
        self.made = 0
        self.up = False
        self.now = 0.0
        self.in_hand: Chunk | None = None
        self.kernel: list[int] = []  # chunks that are not acknowledged
        self.handed = 0
        self.pieces_since_alarm = 0  # of lower levels, given out while an emergency waited

    def make(self, size: int) -> bytes:
        self.made += 1
        return self.made.to_bytes(4).ljust(size, b"x")

    @initialize(packet_payload=st.sampled_from([60, 1440, 1444]))
    def begin(self, packet_payload: int) -> None:
        self.packet_payload = packet_payload
        self.connect()

    def connect(self) -> None:
        self.scheduler.on_link_up(self.packet_payload, self.now)
        self.assembler = METHODS[self.method].assembler(self.parameters)
        self.up, self.kernel, self.handed = True, [], 0

    @rule(size=st.integers(4, 3000), level=st.integers(1, 5))
    def offer(self, size: int, level: int) -> None:
        data = self.make(size)
        self.waiting[level].append(data)
        for dropped in self.scheduler.offer(data, level, self.now):
            assert dropped.reason
            assert dropped.data == data or dropped.priority < level, (
                "only messages of lower levels are evicted"
            )
            assert self.waiting[dropped.priority].pop() == dropped.data, "the newest goes first"

    @rule(size=st.integers(4, 60))
    def offer_control(self, size: int) -> None:
        data = self.make(size)
        assert self.scheduler.offer(data, 1, self.now, control=True) == ()
        self.control.append(data)

    @rule(size=st.integers(4, 3000))
    def offer_upkeep(self, size: int) -> None:
        data = self.make(size)
        assert self.scheduler.offer(data, 1, self.now, upkeep=True) == ()
        self.upkeep.append(data)

    @precondition(lambda self: self.up)
    @rule()
    def give_out(self) -> None:
        chunk = self.scheduler.next_chunk(self.now)
        assert self.scheduler.next_chunk(self.now) == chunk
        if self.in_hand is not None:
            assert chunk == self.in_hand
            return
        self.in_hand = chunk
        if chunk is not None:
            self.judge(chunk)
        elif any(self.waiting.values()) or self.control or self.upkeep:
            deadline = self.scheduler.next_deadline()
            assert deadline is not None, "messages wait, but the scheduler has no deadline"

    def judge(self, chunk: Chunk) -> None:
        """Check that an emergency waits only for earlier chunks, and for the share of lower levels."""
        if not self.waiting[5] or self.is_urgent(chunk):
            if not self.waiting[5]:
                self.pieces_since_alarm = 0
            return
        self.pieces_since_alarm += 1
        assert self.may_go_before(self.pieces_since_alarm)

    def is_urgent(self, chunk: Chunk) -> bool:
        raise NotImplementedError

    def may_go_before(self, pieces: int) -> bool:
        """Whether this many pieces of lower levels may go before an emergency that waits."""
        return False

    @precondition(lambda self: self.up)
    @rule(acknowledged=st.integers(0, 3))
    def go_on(self, acknowledged: int) -> None:
        chunk, self.in_hand = self.in_hand, None
        if chunk is not None:
            self.kernel.append(len(chunk.data))
            self.handed += 1
            for message in self.assembler.on_chunk(chunk):
                self.arrive(message)
        del self.kernel[:acknowledged]
        self.scheduler.on_progress(sum(self.kernel), self.now, 0.01)

    def arrive(self, message: bytes) -> None:
        for queue in (self.control, self.upkeep, *self.waiting.values()):
            if message in queue:
                assert queue.pop(0) == message, "in order within its level"
                return
        raise AssertionError("a message that was never sent, or arrived twice")

    @precondition(lambda self: self.up and self.handed > 0)
    @rule(older=st.integers(0, 2))
    def answer(self, older: int) -> None:
        self.scheduler.on_ack((self.handed - 1 - older) % 256, self.now)

    @rule(seconds=st.sampled_from([0.0001, 0.01, 0.3, 2.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.up)
    @rule(orderly=st.booleans())
    def lose(self, orderly: bool) -> None:
        self.scheduler.on_link_lost(self.now, orderly=orderly)
        self.in_hand, self.up = None, False
        if not orderly:
            self.control.clear()
            self.upkeep.clear()

    @precondition(lambda self: not self.up)
    @rule()
    def come_back(self) -> None:
        self.connect()

    @invariant()
    def counts_are_right(self) -> None:
        published = [data for queue in self.waiting.values() for data in queue]
        everything = [*self.control, *self.upkeep, *published]
        assert self.scheduler.queued == Queued(len(everything), sum(map(len, everything)))
        assert sum(map(len, published)) <= LIMIT

    def teardown(self) -> None:
        """Check that in the end every message that was accepted and not dropped has arrived."""
        if not hasattr(self, "packet_payload"):
            return
        if not self.up:
            self.connect()
        for _ in range(20_000):
            if self.scheduler.queued.messages == 0:
                break
            self.give_out()
            if self.in_hand is None:
                deadline = self.scheduler.next_deadline()
                assert deadline is not None
                self.now = max(self.now, deadline)
            self.go_on(acknowledged=3)
        self.counts_are_right()
        assert not self.control
        assert not self.upkeep
        assert not any(self.waiting.values())
