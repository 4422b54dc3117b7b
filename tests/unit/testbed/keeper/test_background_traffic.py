"""Background traffic that a machine cannot send must not keep its sender from reading questions; with a fake clock."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.keeper.background_traffic import Flow


class Slow:
    """A socket on which each datagram takes a while; one whose queue is full takes none."""

    def __init__(self, each_s: float, *, full: bool = False) -> None:
        self.now_s = 0.0
        self._each_s = each_s
        self._full = full

    def sendto(self, payload: bytes, target: tuple[str, int]) -> None:
        self.now_s += self._each_s
        if self._full:
            raise BlockingIOError

    def clock(self) -> float:
        return self.now_s


def flow(gap_s: float, slow: Slow) -> Flow:
    made = Flow.__new__(Flow)
    made._target, made._payload, made._gap_s = ("10.0.0.1", 9), b"", gap_s
    made.due_s, made.sent, made.left, made._sender = 0.0, 0, 0, slow
    return made


@given(st.floats(1e-5, 1e-2), st.floats(1e-6, 1e-2), st.lists(st.floats(0, 3), max_size=20))
def test_a_round_is_short_and_each_datagram_is_sent_or_left_or_still_due(gap_s, each_s, pauses):
    slow = Slow(each_s)
    one = flow(gap_s, slow)
    for pause_s in pauses:
        slow.now_s += pause_s
        began_s = slow.now_s
        one.send(began_s, slow.clock)
        assert slow.now_s - began_s <= 0.005 + each_s + 1e-9
        assert one.due_s >= began_s - 1.0 - 1e-9
        assert abs((one.sent + one.left) * gap_s - one.due_s) < 1e-6


def test_a_load_that_can_be_sent_is_sent_whole():
    slow = Slow(1e-6)
    one = flow(0.001, slow)
    for tick in range(1_000):
        slow.now_s = max(slow.now_s, tick / 1_000)
        one.send(slow.now_s, slow.clock)
    assert one.sent in (999, 1_000)  # the sum of gaps is not exact
    assert one.left == 0


def test_a_datagram_for_a_full_queue_is_not_sent():
    slow = Slow(1e-6, full=True)
    one = flow(0.25, slow)
    one.send(1.0, lambda: 1.0)
    assert (one.sent, one.left) == (0, 5)
