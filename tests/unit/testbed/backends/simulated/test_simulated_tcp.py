"""TCP in virtual time: every byte arrives in order, whatever the link loses, and a good link is kept busy."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.backends.simulated.capture import DirectionCapture
from testbed.backends.simulated.congestion import FIRST_PACKETS
from testbed.backends.simulated.link_layer import Flow, LinkDirection
from testbed.backends.simulated.loop import SECOND, Loop
from testbed.backends.simulated.tcp import END, PUT_OFF, Endpoint
from testbed.links.model import LinkModel
from testbed.topology.model import CongestionControl, Shape

BBR = CongestionControl.BBR
MILLISECOND = SECOND // 1000


class Pair:
    """Two endpoints and a link in each direction."""

    def __init__(
        self,
        there: Shape,
        back: Shape,
        queue: int = 60_000,
        seed: int = 1,
        tcp: CongestionControl = BBR,
    ) -> None:
        self.loop = Loop()
        self.capture = DirectionCapture("there", "up")
        self.links = [
            LinkDirection(
                self.loop, LinkModel(shape, queue, Random(f"{seed}/{direction}")), capture
            )
            for direction, shape, capture in (
                ("there", there, self.capture),
                ("back", back, DirectionCapture("back", "down")),
            )
        ]
        forward, backward = Flow("a", "b", (self.links[0],)), Flow("b", "a", (self.links[1],))
        self.near = Endpoint(self.loop, forward, backward, 1500, client=True, tcp=tcp)
        self.far = Endpoint(self.loop, backward, forward, 1500, client=False, tcp=tcp)
        self.got: list[object] = []
        self.got_at: list[int] = []
        self.far.receiver.on_item = self._take

    def _take(self, item: object) -> None:
        self.got.append(item)
        self.got_at.append(self.loop.now)

    def run(self, seconds: float) -> None:
        self.loop.run(self.loop.now + round(seconds * SECOND))


@given(
    st.lists(st.integers(1, 30_000), min_size=1, max_size=20),
    st.floats(0, 0.3),
    st.floats(0, 0.3),
    st.integers(3_000, 60_000),
    st.booleans(),
    st.integers(0, 1000),
    st.sampled_from(CongestionControl),
)
@settings(max_examples=100, deadline=None)
def test_everything_arrives_once_and_in_order_whatever_is_lost(
    sizes: list[int],
    lost: float,
    acks_lost: float,
    queue: int,
    prompt: bool,
    seed: int,
    tcp: CongestionControl,
) -> None:
    pair = Pair(
        Shape(rate_bps=1e6, delay_s=0.03, jitter_s=0.01, loss=lost),
        Shape(delay_s=0.03, loss=acks_lost),
        queue,
        seed,
        tcp,
    )
    pair.far.receiver.put_off_ns = 0 if prompt else PUT_OFF
    pair.near.on_open = lambda: [pair.near.write(size, n) for n, size in enumerate(sizes)]
    pair.near.connect()
    pair.run(3600)
    assert pair.got == list(range(len(sizes)))
    assert pair.near.sender.unacknowledged == 0


@given(st.floats(8e4, 1e7), st.floats(0, 0.3), st.booleans(), st.sampled_from(CongestionControl))
@settings(max_examples=60, deadline=None)
def test_a_link_without_losses_is_kept_busy_and_carries_each_byte_once(
    rate: float, delay: float, prompt: bool, tcp: CongestionControl
) -> None:
    queue = max(30_000, round(rate / 8 * 2 * (delay + 0.05)))  # two round trips' worth
    pair = Pair(Shape(rate_bps=rate, delay_s=delay), Shape(delay_s=delay), queue, tcp=tcp)
    pair.far.receiver.put_off_ns = 0 if prompt else PUT_OFF
    seconds = 20 + 40 * delay
    size = round(rate / 8 * seconds)
    pair.near.on_open = lambda: pair.near.write(size, "all")
    pair.near.connect()
    pair.run(10 * seconds)
    packets = -(-size // 1448)
    assert pair.got == ["all"]
    if tcp is BBR:  # the others find the end of the queue by a loss
        assert sum(pair.capture.streams[pair.near.sender._flow].lengths) == size
    least_s = (size + 66 * packets) * 8 / rate + 3 * delay
    assert least_s <= pair.got_at[0] / SECOND <= 1.1 * least_s + 10 * delay


@pytest.mark.parametrize("tcp", [CongestionControl.CUBIC, CongestionControl.RENO])
def test_a_queue_that_overflows_reduces_the_window_without_a_timeout(
    tcp: CongestionControl,
) -> None:
    pair = Pair(Shape(rate_bps=1e6, delay_s=0.05), Shape(delay_s=0.05), 30_000, tcp=tcp)
    pair.near.on_open = lambda: pair.near.write(1_500_000, "all")
    pair.near.connect()
    timeouts: list[int] = []
    window = pair.near.sender._window
    window.on_timeout = lambda **_: timeouts.append(pair.loop.now)  # type: ignore[method-assign]
    pair.run(60)
    packets = -(-1_500_000 // 1448)
    assert pair.got == ["all"]
    assert (
        packets < pair.near.sender._orders < 1.1 * packets
    )  # what was lost, and no more, left again
    assert pair.capture.packets < 1.01 * packets + 5
    assert pair.got_at[0] / SECOND < 1.1 * 1_500_000 * 8 / 1e6 * 1514 / 1448
    assert not timeouts


def test_reno_and_cubic_fill_a_long_queue_and_bbr_does_not() -> None:
    """Why they must not be mixed up: the wait in the queue is the delay of all others on the link."""

    def longest_wait(tcp: CongestionControl) -> float:
        pair = Pair(Shape(rate_bps=375e3, delay_s=0.05), Shape(delay_s=0.05), 64_000, tcp=tcp)
        pair.near.on_open = lambda: pair.near.write(1_000_000, "all")
        pair.near.connect()
        longest = 0.0
        for _ in range(200):
            pair.run(0.1)
            longest = max(longest, pair.links[0].model._backlog * 8 / 375e3)
        return longest

    assert longest_wait(CongestionControl.CUBIC) > 1.2
    assert longest_wait(CongestionControl.RENO) > 1.2
    assert longest_wait(BBR) < 0.4


def test_on_a_very_slow_link_a_few_late_packets_are_retransmitted() -> None:
    pair = Pair(
        Shape(rate_bps=20_000), Shape()
    )  # a packet takes 0.6 s, the timer begins with 0.23 s
    pair.near.on_open = lambda: pair.near.write(50_000, "all")
    pair.near.connect()
    pair.run(100)
    assert pair.got == ["all"]
    assert 50_000 < sum(pair.capture.streams[pair.near.sender._flow].lengths) < 75_000


def test_an_endpoint_reports_unacknowledged_bytes_and_the_shortest_round_trip() -> None:
    pair = Pair(Shape(rate_bps=80_000, delay_s=0.05), Shape(delay_s=0.05))
    pair.far.receiver.put_off_ns = 0
    pair.near.connect()
    pair.run(1)
    # 74 bytes at 10 kB/s and two delays; the link of the answer has no rate
    assert pair.near.round_trip_s == 0.1074
    pair.near.write(1000, "x")
    assert pair.near.sender.unacknowledged == 1000
    pair.run(0.15)
    assert pair.near.sender.unacknowledged == 1000  # 0.1066 s on the link, 0.05 s of delay
    pair.run(0.1)
    assert pair.near.sender.unacknowledged == 0
    assert pair.got == ["x"]


def test_a_packet_carries_as_much_payload_as_on_a_real_link() -> None:
    pair = Pair(Shape(), Shape())
    assert (pair.near.packet_payload, pair.far.packet_payload) == (1440, 1444)


def test_a_lost_lone_packet_arrives_with_the_probe() -> None:
    pair = Pair(Shape(delay_s=0.05), Shape(delay_s=0.05))
    pair.far.receiver.put_off_ns = 0
    pair.near.connect()
    pair.run(1)
    pair.links[0].set_cut(True)
    pair.near.write(100, "x")
    pair.links[0].set_cut(False)  # the packet under way is lost
    began = pair.loop.now
    pair.run(5)
    # A round trip of 100 ms, four times its variation (50 ms after one sample), and the delay to the other endpoint.
    assert pair.got_at[0] - began == (100 + 4 * 50 + 50) * MILLISECOND


def test_after_a_cut_the_timer_has_doubled() -> None:
    pair = Pair(Shape(delay_s=0.05), Shape(delay_s=0.05))
    pair.near.connect()
    pair.run(1)
    pair.links[0].set_cut(True)
    pair.near.write(100, "x")
    pair.run(20)
    pair.links[0].set_cut(False)
    began = pair.loop.now
    pair.run(60)
    waited = (pair.got_at[0] - began) / SECOND
    assert 0 < waited < 25  # as late as the cut was long, at most


def test_a_sender_without_acknowledgements_for_two_minutes_gives_up() -> None:
    pair = Pair(Shape(delay_s=0.05), Shape(delay_s=0.05))
    gone: list[float] = []
    pair.near.on_vanished = lambda: gone.append(pair.loop.seconds)
    pair.near.connect()
    pair.run(1)
    pair.links[1].set_cut(True)
    pair.near.write(100, "x")
    pair.run(1000)
    (at,) = gone
    assert 120 < at < 300


def test_an_idle_endpoint_gives_up_too_unless_its_peer_answers_its_probes() -> None:
    pair = Pair(Shape(delay_s=0.05), Shape(delay_s=0.05))
    gone: list[float] = []
    pair.far.on_vanished = lambda: gone.append(pair.loop.seconds)
    pair.near.connect()
    pair.run(1000)
    assert gone == []
    pair.links[0].set_cut(True)
    pair.run(1000)
    (at,) = gone
    assert 1060 < at < 1200


@given(st.floats(0, 0.3), st.integers(0, 200))
@settings(max_examples=30, deadline=None)
def test_a_stream_ends_after_all_written_bytes_whatever_is_lost(lost: float, seed: int) -> None:
    pair = Pair(Shape(1e6, 0.02, loss=lost), Shape(1e6, 0.02, loss=lost), seed=seed)
    pair.near.connect()
    pair.run(60)
    pair.near.write(20_000, "last bytes")
    pair.near.finish()
    pair.run(120)
    assert pair.got == ["last bytes", END]


def test_a_connection_without_a_listener_is_refused_after_one_round_trip() -> None:
    pair = Pair(Shape(delay_s=0.1), Shape(delay_s=0.1))
    refused: list[int] = []
    pair.far.admits = lambda: False
    pair.near.on_refused = lambda: refused.append(pair.loop.now)
    pair.near.connect()
    pair.run(10)
    assert refused == [200 * MILLISECOND]
    assert pair.capture.packets == 1  # it does not try again by itself


def test_a_sender_on_an_abandoned_connection_is_notified() -> None:
    pair = Pair(Shape(delay_s=0.1), Shape(delay_s=0.1))
    vanished_at: list[int] = []
    pair.near.on_vanished = lambda: vanished_at.append(pair.loop.now)
    pair.near.connect()
    pair.run(1)
    pair.far.stop()
    pair.near.write(100, "hello?")
    pair.run(1)
    assert vanished_at == [1200 * MILLISECOND]
    assert pair.got == []


@pytest.mark.parametrize("tcp", [CongestionControl.CUBIC, CongestionControl.RENO])
def test_a_packet_that_leaves_begins_the_time_to_a_probe_anew(tcp: CongestionControl) -> None:
    """RFC 8985, 7.2. Otherwise the second of two packets would leave twice at once."""
    pair = Pair(Shape(delay_s=0.05), Shape(delay_s=0.05), tcp=tcp)
    pair.far.receiver.put_off_ns = 0
    pair.near.connect()
    pair.run(1)
    pair.links[1].set_cut(True)
    pair.near.write(100, "x")
    pair.run(
        0.25
    )  # two round trips, and less than 200 ms more, in which the answer to a lone packet may come
    before = pair.capture.packets
    pair.near.write(100, "y")
    pair.run(0.06)
    assert pair.capture.packets == before + 1


@pytest.mark.parametrize("tcp", [CongestionControl.CUBIC, CongestionControl.RENO])
def test_packets_that_are_only_late_reduce_nothing(tcp: CongestionControl) -> None:
    """After the timer, the first copies of all packets come: none of those sent between is lost (RFC 8985, 6.2)."""
    pair = Pair(Shape(rate_bps=20_000, delay_s=0.05), Shape(delay_s=0.05), tcp=tcp)
    pair.far.receiver.put_off_ns = 0
    pair.near.connect()
    pair.run(1)
    window, reduced, undone = pair.near.sender._window, [], []
    undo = window.on_undo

    def on_undo() -> None:
        undone.append(pair.loop.now)
        undo()

    window.on_loss = lambda: reduced.append(pair.loop.now)  # type: ignore[method-assign]
    window.on_undo = on_undo  # type: ignore[method-assign]
    pair.near.write(14_480, "all")  # ten packets, each 0.6 s on the link
    pair.run(30)
    assert pair.got == ["all"]
    assert undone
    assert not reduced
    assert window.packets >= FIRST_PACKETS
