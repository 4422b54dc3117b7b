"""From arrivals to rate and delay: on ideal links exactly, with jitter and loss nearly."""

from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testbed.links.calibration.exchange import (
    Arrival,
    Frame,
    delay_s,
    stream_rate_bps,
    train_rate_bps,
)
from testbed.links.calibration.probes import (
    Lone,
    Train,
    lone,
    packet_train,
    quick_lone,
    serialisation_s,
)
from testbed.links.calibration.verdict import Evidence, Method, Numbers, judge
from testbed.links.model import Drop, LinkModel, queue_bytes, tbf_burst
from testbed.topology.model import Emulator, Shape
from testbed.topology.profiles import PROFILES

rates = st.floats(5e3, 1e9)
BETWEEN_SENDS_NS = 8_000


def through(shape: Shape, sent: Train, seed: int = 0, mtu: int = 1500) -> list[Arrival]:
    """What comes out of a modelled link when a train goes in."""
    model = LinkModel(shape, queue_bytes(shape, mtu), Random(seed))
    fates = [model.on_packet(sent.size, i * BETWEEN_SENDS_NS) for i in range(sent.count)]
    assert Drop.QUEUE not in fates
    return [
        Arrival(i, sent.size, i * BETWEEN_SENDS_NS, fate)
        for i, fate in enumerate(fates)
        if not isinstance(fate, Drop)
    ]


def scattered(shape: Shape, sent: Lone, seed: int = 0) -> list[Arrival]:
    """What comes out of modelled links when lone packets go in."""
    lanes = [LinkModel(shape, 10**9, Random(f"{seed}/{lane}")) for lane in range(sent.lanes)]
    arrivals = []
    for index in range(sent.count):
        now = round(sent.at_s(index) * 1e9)
        fate = lanes[index % sent.lanes].on_packet(sent.size, now)
        if not isinstance(fate, Drop):
            arrivals.append(Arrival(index, sent.size, now, fate))
    return arrivals


@given(rates, st.floats(0, 2), st.integers(576, 9000))
def test_a_train_measures_the_rate_of_any_link_and_never_fills_its_queue(
    rate_bps: float, delay: float, mtu: int
) -> None:
    shape = Shape(rate_bps=rate_bps, delay_s=delay)
    sent = packet_train(Emulator.RELAY, shape, mtu)
    assert sent is not None
    assert sent.size <= mtu + 14
    assert sent.lasts_s(rate_bps) <= 1
    assume(sent.size * 8e9 / rate_bps > BETWEEN_SENDS_NS)  # else the sender is the slower one
    assert train_rate_bps(through(shape, sent, mtu=mtu)) == pytest.approx(rate_bps, rel=1e-3)


@given(rates, st.integers(3_000, 10**6))
def test_a_train_fits_the_queue_that_was_asked_for(rate_bps: float, queue: int) -> None:
    sent = packet_train(Emulator.RELAY, Shape(rate_bps=rate_bps, queue_bytes=queue), 1500)
    if sent is not None:
        assert sent.count * sent.size <= queue


def test_links_without_a_rate_or_with_a_tiny_queue_get_no_train() -> None:
    assert packet_train(Emulator.RELAY, Shape(delay_s=0.1), 1500) is None
    assert packet_train(Emulator.RELAY, Shape(rate_bps=1e6, queue_bytes=300), 1500) is None


@given(st.floats(2e4, 1e8), st.integers(576, 9000))
def test_the_credit_of_a_token_bucket_does_not_flatter_the_rate(rate_bps: float, mtu: int) -> None:
    shape = Shape(rate_bps=rate_bps)
    sent, credit = packet_train(Emulator.TBF, shape, mtu), tbf_burst(rate_bps, mtu)
    assert sent is not None
    arrivals = [
        Arrival(i, sent.size, 0, round(max(0, (i + 1) * sent.size - credit) * 8e9 / rate_bps))
        for i in range(sent.count)
    ]
    assert train_rate_bps(arrivals, credit) == pytest.approx(rate_bps, rel=1e-3)
    naive = train_rate_bps(arrivals)
    assert naive is None or naive >= rate_bps * 0.999


@given(st.sets(st.integers(0, 39), max_size=30))
def test_lost_packets_do_not_change_the_rate(lost: set[int]) -> None:
    shape = Shape(rate_bps=1e5)
    on_link = [one for one in through(shape, Train(40, 200)) if one.index not in lost]
    assert train_rate_bps(on_link) == pytest.approx(1e5, rel=1e-3)
    sent = [index for index in range(40) if index not in lost]  # these alone use the link
    before_link = [
        Arrival(index, 200, 0, round(place * 1600e9 / 1e5)) for place, index in enumerate(sent)
    ]
    assert train_rate_bps(before_link, lost_on_link=False) == pytest.approx(1e5, rel=1e-3)


def test_one_packet_measures_no_rate() -> None:
    assert train_rate_bps([Arrival(0, 1000, 0, 5)]) is None
    assert train_rate_bps([]) is None


@given(rates, st.floats(0, 5))
def test_lone_packets_measure_the_delay_without_the_time_on_the_link(
    rate_bps: float, delay: float
) -> None:
    shape = Shape(rate_bps=rate_bps, delay_s=delay)
    sent = quick_lone(shape)
    on_link_s = serialisation_s(Emulator.RELAY, shape, sent.size)
    assert delay_s(scattered(shape, sent), on_link_s) == pytest.approx(delay, abs=1e-6)


def test_no_arrival_is_no_delay() -> None:
    assert delay_s([], 0.0) is None


@given(rates, st.floats(0, 0.5), st.integers(1, 100), st.floats(0.1, 10))
def test_lone_packets_are_alone(
    rate_bps: float, jitter: float, count: int, within_s: float
) -> None:
    sent = lone(Shape(rate_bps=rate_bps, delay_s=jitter, jitter_s=jitter), count, within_s)
    assert sent.gap_s >= 2 * jitter
    assert sent.gap_s >= 2 * sent.size * 8 / rate_bps
    by_lane: dict[int, float] = {}
    for index in range(sent.count):
        at, lane = sent.at_s(index), index % sent.lanes
        assert at - by_lane.get(lane, -sent.gap_s) >= sent.gap_s * 0.999
        by_lane[lane] = at


@given(rates, st.floats(0, 0.3))
def test_the_quick_look_is_quick(rate_bps: float, jitter: float) -> None:
    sent = quick_lone(Shape(rate_bps=rate_bps, delay_s=jitter, jitter_s=jitter))
    assert sent.count % 2 == 1
    assert sent.count == 1 or sent.lasts_s <= 1.7


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_link_that_is_as_asked_is_hardly_ever_blamed(name: str, direction: str) -> None:
    shape: Shape = getattr(PROFILES[name], direction)
    packets, alone = packet_train(Emulator.RELAY, shape, 1500), quick_lone(shape)
    assert packets is not None
    assert shape.rate_bps is not None
    blamed = 0
    for seed in range(100):
        lone_received = scattered(shape, alone, seed)
        on_link_s = serialisation_s(Emulator.RELAY, shape, alone.size)
        achieved = Numbers(
            train_rate_bps(through(shape, packets, seed)), delay_s(lone_received, on_link_s)
        )
        evidence = Evidence(
            lone_sent=alone.count,
            lone_received=len(lone_received),
            train_packets=packets.count,
            train_s=packets.lasts_s(shape.rate_bps),
        )
        blamed += not judge(name, direction, Method.QUICK, shape, achieved, evidence).ok
    assert blamed <= 2


def test_a_stream_counts_from_its_first_data_to_its_last_arrival() -> None:
    handshake = [Frame(0, 74, carries=False), Frame(400_000_000, 66, carries=False)]
    data = [Frame(10**9 + i * 10**8, 1250) for i in range(11)]
    assert stream_rate_bps([*handshake, *data]) == pytest.approx(100_000)
    assert stream_rate_bps(handshake) is None
    assert stream_rate_bps(data[:1]) is None


def test_the_beginning_of_a_stream_can_be_left_out() -> None:
    slow = [Frame(i * 10**8, 125) for i in range(10)]
    fast = [Frame(10**9 + i * 10**8, 1250) for i in range(11)]
    assert stream_rate_bps([*slow, *fast], skip_s=1.0) == pytest.approx(100_000)
    assert stream_rate_bps([*slow, *fast]) < 100_000  # type: ignore[operator]


def test_the_credit_of_a_slow_token_bucket_would_flatter_the_rate() -> None:
    """Why it is left out: a train of 0.8 s on a link of 10 kB/s, of which 1,600 bytes pass at once."""
    arrivals = [Arrival(i, 200, 0, max(0, (i + 1) * 200 - 1600) * 100_000) for i in range(40)]
    assert train_rate_bps(arrivals, 1600) == pytest.approx(80_000)
    assert train_rate_bps(arrivals) > 85_000  # type: ignore[operator]
