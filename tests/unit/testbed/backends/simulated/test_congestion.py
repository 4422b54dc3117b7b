"""Congestion windows: bounds whatever happens, and the curves of RFC 5681 and RFC 9438 as formulas of their own."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.backends.simulated.congestion import (
    FIRST_PACKETS,
    Cubic,
    Delivery,
    FastRecovery,
    Reno,
    Window,
    window_of,
)
from testbed.backends.simulated.loop import SECOND
from testbed.topology.model import CongestionControl

SEGMENT = 1448
ALL = st.sampled_from(CongestionControl)
LOSS_BASED = st.sampled_from((CongestionControl.RENO, CongestionControl.CUBIC))


class Connection:
    """A sender that always has more to send, over a link that delivers each window within one round trip."""

    def __init__(self, window: Window, round_trip_s: float) -> None:
        self.window = window
        self.now = SECOND
        self.round_trip = round(round_trip_s * SECOND)
        self.shortest = self.round_trip
        self._delivered = 0

    @property
    def seconds(self) -> float:
        return self.now / SECOND

    def round(self, *, full: bool = True) -> None:
        """One round trip: its packets are delivered one by one, at even distances."""
        before, packets = self._delivered, max(1, int(self.window.packets))
        began = self.now
        for number in range(packets):
            self.now = began + self.round_trip * (number + 1) // packets
            self._delivered += SEGMENT
            self.window.on_delivered(
                Delivery(
                    packets=1,
                    delivered=self._delivered,
                    before=before,
                    took=self.round_trip,
                    shortest_ns=self.shortest,
                    round_trip_ns=self.round_trip,
                    now=self.now,
                    limited=not full,
                    full=full,
                )
            )


def in_avoidance(window: Reno, packets: float) -> Reno:
    """The window with so many packets in flight, out of slow start."""
    window.packets = window.threshold = packets
    return window


# Whatever happens


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("round"), st.floats(0.001, 5)),
        st.tuples(st.just("unused round"), st.floats(0.001, 5)),
        st.tuples(st.just("loss"), st.none()),
        st.tuples(st.just("timeout"), st.booleans()),
        st.tuples(st.just("undo"), st.none()),
        st.tuples(st.just("idle"), st.integers(0, 10**13)),
    ),
    max_size=30,
)


@given(ALL, EVENTS)
def test_a_window_is_never_below_one_packet_and_after_a_loss_never_below_two(
    name: CongestionControl, events: list[tuple[str, float | None]]
) -> None:
    window = window_of(name, SEGMENT)
    connection = Connection(window, 0.1)
    for event, value in events:
        match event:
            case "round" | "unused round":
                assert value is not None
                connection.round_trip = round(value * SECOND)
                connection.shortest = min(connection.shortest, connection.round_trip)
                if window.packets < 2_000:
                    connection.round(full=event == "round")
            case "loss":
                window.on_loss()
                assert window.packets >= 2 or name is CongestionControl.BBR
            case "timeout":
                window.on_timeout(recovering=bool(value))
                assert window.packets == 1
            case "undo":
                window.on_undo()
            case "idle":
                window.on_idle(int(value or 0), SECOND)
        assert 1 <= window.packets < math.inf
        assert window.allows(0)


@given(LOSS_BASED, st.floats(0.01, 2), st.integers(0, 6))
def test_a_window_that_is_not_used_does_not_grow(
    name: CongestionControl, round_trip_s: float, rounds: int
) -> None:
    window = window_of(name, SEGMENT)
    connection = Connection(window, round_trip_s)
    for _ in range(rounds):
        connection.round(full=False)
    assert window.packets == FIRST_PACKETS


@given(LOSS_BASED, st.floats(2, 1_000))
def test_a_timeout_that_was_none_is_undone(name: CongestionControl, packets: float) -> None:
    window = window_of(name, SEGMENT)
    assert isinstance(window, Reno)
    in_avoidance(window, packets)
    window.on_timeout(recovering=False)
    window.on_timeout(recovering=True)  # and again, twice as late
    assert window.packets == 1
    window.on_undo()
    assert (window.packets, window.threshold) == (packets, packets)


def test_bbr_ignores_losses() -> None:
    window = window_of(CongestionControl.BBR, SEGMENT)
    window.on_loss()
    assert window.packets == FIRST_PACKETS
    assert not window.reacts_to_loss


# Reno


@given(st.floats(1, 10_000))
def test_reno_halves_the_window_on_a_loss(packets: float) -> None:
    window = in_avoidance(Reno(), packets)
    window.on_loss()
    assert window.packets == window.threshold == max(packets / 2, 2)


def test_reno_doubles_its_window_in_each_round_trip_up_to_the_threshold() -> None:
    window = Reno()
    window.threshold = 60
    connection = Connection(window, 0.1)
    seen = []
    for _ in range(4):
        connection.round()
        seen.append(math.floor(window.packets))
    assert seen == [20, 40, 60, 61]


@given(st.integers(2, 300), st.integers(1, 50))
def test_reno_adds_a_packet_in_each_round_trip(packets: int, rounds: int) -> None:
    window = in_avoidance(Reno(), packets)
    connection = Connection(window, 0.1)
    for _ in range(rounds):
        connection.round()
    # A window of w + f packets (f < 1) is acknowledged with w acknowledgements, each of which adds a little less.
    assert packets + 0.6 * rounds < window.packets <= packets + rounds


@given(st.floats(2, 1_000))
def test_reno_begins_with_one_packet_after_a_timeout_and_doubles_up_to_half(packets: float) -> None:
    window = in_avoidance(Reno(), packets)
    window.on_timeout(recovering=False)
    assert (window.packets, window.threshold) == (1, max(packets / 2, 2))


def test_the_threshold_of_packets_that_are_lost_again_stays() -> None:
    window = in_avoidance(Reno(), 100)
    window.on_loss()
    window.on_timeout(recovering=True)
    assert (window.packets, window.threshold) == (1, 50)


def test_an_idle_sender_halves_its_window_for_each_timeout_but_not_below_the_first() -> None:
    window = in_avoidance(Reno(), 100)
    window.on_idle(SECOND, SECOND)
    assert window.packets == 100
    window.on_idle(2 * SECOND, SECOND)
    assert (window.packets, window.threshold) == (25, 100)
    window.on_idle(1_000 * SECOND, SECOND)
    assert (window.packets, window.threshold) == (FIRST_PACKETS, 100)


# Cubic, beside the formulas of RFC 9438


def w_cubic(elapsed_s: float, w_max: float, begin: float) -> float:
    """Figure 1 with figure 2 in it."""
    return 0.4 * (elapsed_s - ((w_max - begin) / 0.4) ** (1 / 3)) ** 3 + w_max


@given(st.floats(3, 10_000))
def test_cubic_reduces_the_window_to_seven_tenths(packets: float) -> None:
    window = in_avoidance(Cubic(), packets)
    window.on_loss()
    assert window.packets == pytest.approx(max(0.7 * packets, 2))


@given(st.floats(300, 3_000), st.floats(0.2, 0.5), st.integers(1, 60))
def test_cubic_follows_its_curve_after_a_loss(
    w_max: float, round_trip_s: float, rounds: int
) -> None:
    """On long paths the curve is above what Reno has, on both sides of W_max."""
    window = in_avoidance(Cubic(), w_max)
    window.on_loss()
    connection = Connection(window, round_trip_s)
    began, begin = connection.seconds, window.packets
    for _ in range(rounds):
        connection.round()
        elapsed_s = connection.seconds - began
        reno = begin + 3 * (1 - 0.7) / (1 + 0.7) * elapsed_s / round_trip_s
        curve = w_cubic(elapsed_s, w_max, begin)
        if curve < 1.1 * reno or window.packets > 5_000:
            break
        assert window.packets == pytest.approx(curve, rel=0.03)


@given(st.floats(10, 60), st.floats(0.005, 0.02))
def test_cubic_is_as_fast_as_reno_where_that_is_faster(w_max: float, round_trip_s: float) -> None:
    """The Reno-friendly region: the closed form of W_est, up to the window before the loss; then a packet a round."""
    window = in_avoidance(Cubic(), w_max)
    window.on_loss()
    connection = Connection(window, round_trip_s)
    begin, alpha = window.packets, 3 * (1 - 0.7) / (1 + 0.7)
    rounds = 0
    while window.packets < w_max - 1:
        connection.round()
        rounds += 1
        assert rounds < 200
        # A window of w + f packets is acknowledged with w acknowledgements.
        assert window.packets <= begin + alpha * rounds + 1
        assert window.packets >= begin + 0.85 * alpha * rounds - 1
    while window.packets < w_max + 1:
        connection.round()
    before = window.packets
    for _ in range(10):
        connection.round()
    assert 8 <= window.packets - before <= 10.5


@given(st.floats(10, 1_000), st.floats(0.71, 0.99))
def test_cubic_gives_way_if_losses_come_before_it_has_its_window_back(
    w_max: float, part: float
) -> None:
    """Fast convergence: W_max becomes (1 + beta) / 2 of the window, so the curve begins flatter."""
    window = in_avoidance(Cubic(), w_max)
    window.on_loss()
    in_avoidance(window, part * w_max)
    window.on_loss()
    connection = Connection(window, 0.1)
    begin = window.packets
    connection.round()
    assert begin == pytest.approx(max(0.7 * part * w_max, 2))
    elapsed_s = 20.0
    w_max_now = part * w_max * (1 + 0.7) / 2
    # The curve counts from the first acknowledgement.
    assert window.curve(elapsed_s) == pytest.approx(w_cubic(elapsed_s, w_max_now, begin), rel=0.01)


@given(st.floats(20, 1_000), st.integers(1, 20))
def test_after_a_timeout_cubic_begins_its_curve_at_the_plateau(packets: float, rounds: int) -> None:
    """RFC 9438, 4.8: K = 0, and W_max is the window at the beginning of congestion avoidance."""
    window = in_avoidance(Cubic(), packets)
    window.on_timeout(recovering=False)
    assert (window.packets, window.threshold) == (1, pytest.approx(max(0.7 * packets, 2)))
    window.packets = window.threshold
    connection = Connection(window, 0.1)
    for _ in range(rounds):
        connection.round()
    assert window.curve(0.0) == pytest.approx(0.7 * packets)
    assert window.curve(2.0) == pytest.approx(0.4 * 2.0**3 + 0.7 * packets)


def test_idle_time_is_no_time_of_the_curve() -> None:
    def after(idle_s: int) -> float:
        window = in_avoidance(Cubic(), 500)
        window.on_loss()
        connection = Connection(window, 0.3)
        connection.round()
        window.on_idle(idle_s * SECOND, 1_000 * SECOND)
        connection.now += idle_s * SECOND
        connection.round()
        return window.packets

    assert after(0) == pytest.approx(after(100))


# Slow start of Cubic


def rounds_of_slow_start(window: Reno, round_trip: Callable[[int], float]) -> int:
    connection = Connection(window, 0.1)
    for number in range(6):
        connection.round_trip = round(round_trip(number) * SECOND)
        connection.round()
        if not window.begins:
            return number
    return 6


def test_hystart_ends_slow_start_when_the_round_trip_rises_by_an_eighth() -> None:
    assert rounds_of_slow_start(Cubic(), lambda number: 0.1 + 0.013 * (number >= 2)) == 2
    assert rounds_of_slow_start(Reno(), lambda number: 0.1 + 0.013 * (number >= 2)) == 6


def test_hystart_goes_on_while_the_round_trip_is_steady_and_packets_come_apart() -> None:
    assert rounds_of_slow_start(Cubic(), lambda number: 0.1) >= 2
    assert rounds_of_slow_start(Cubic(), lambda number: 0.1 + 0.012 * (number >= 1)) >= 2


def test_hystart_ends_slow_start_when_packets_fill_half_a_round_trip_without_a_gap() -> None:
    assert rounds_of_slow_start(Cubic(), lambda number: 0.1) < 6


# Fast recovery


@given(st.integers(2, 500), st.floats(0.3, 0.9), st.data())
def test_fast_recovery_sends_at_most_what_was_delivered_and_ends_with_the_reduced_window(
    before: int, part: float, data: st.DataObject
) -> None:
    after = max(part * before, 2)
    lost = data.draw(st.integers(1, before - 1))
    recovery = FastRecovery(before, after, ends_at=0)
    in_flight, sent = before - lost, 0
    for delivered in range(1, before - lost + 1):
        in_flight -= 1
        recovery.on_ack(1, in_flight)
        if delivered == 1:
            assert recovery.packets > in_flight  # the first lost packet leaves at once
        while in_flight < recovery.packets:
            recovery.on_sent()
            in_flight, sent = in_flight + 1, sent + 1
        assert sent <= 2 * delivered  # at most as in slow start
        assert in_flight <= max(before - lost, int(after))
    if before - lost >= int(after):
        assert abs(in_flight - int(after)) <= 1
