"""The relay's arithmetic: what a link must and must not do, over many random arrivals."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from testbed.links.model import SECOND, Drop, LinkModel
from testbed.topology.model import Shape

MILLISECOND = SECOND // 1000
LARGE_QUEUE = 10**12

arrivals = st.lists(
    st.tuples(st.integers(0, 50 * MILLISECOND), st.integers(60, 1514)), min_size=1, max_size=60
)
rates = st.floats(8e3, 1e8)


def run(
    model: LinkModel, gaps_and_sizes: list[tuple[int, int]]
) -> list[tuple[int, int, int | Drop]]:
    """(came at, size, fate) of each packet."""
    now = 0
    fates = []
    for gap, size in gaps_and_sizes:
        now += gap
        fates.append((now, size, model.on_packet(size, now)))
    return fates


def arrived(fates: list[tuple[int, int, int | Drop]]) -> list[tuple[int, int]]:
    return [(fate, size) for _, size, fate in fates if not isinstance(fate, Drop)]


def test_a_lone_packet_takes_its_full_time_on_the_link() -> None:
    model = LinkModel(Shape(rate_bps=80_000), LARGE_QUEUE, Random(1))  # 10 kB/s
    assert model.on_packet(1000, now=5 * SECOND) == 5 * SECOND + 100 * MILLISECOND


def test_delay_comes_after_the_link() -> None:
    model = LinkModel(Shape(rate_bps=80_000, delay_s=0.25), LARGE_QUEUE, Random(1))
    assert model.on_packet(1000, now=0) == 350 * MILLISECOND


def test_without_a_rate_only_the_delay_counts() -> None:
    model = LinkModel(Shape(delay_s=0.02), 0, Random(1))
    assert [model.on_packet(1514, now=7) for _ in range(3)] == [20 * MILLISECOND + 7] * 3


def test_the_queue_is_beside_the_packet_on_the_link() -> None:
    model = LinkModel(Shape(rate_bps=80_000), 2000, Random(1))
    fates = [model.on_packet(1000, now=0) for _ in range(4)]
    assert fates == [100 * MILLISECOND, 200 * MILLISECOND, 300 * MILLISECOND, Drop.QUEUE]
    assert model.on_packet(1000, now=100 * MILLISECOND) == 400 * MILLISECOND


def test_an_idle_link_takes_a_packet_of_any_size() -> None:
    assert LinkModel(Shape(rate_bps=8_000), 0, Random(1)).on_packet(1514, now=0) is not Drop.QUEUE


def test_a_new_shape_holds_for_new_packets_only() -> None:
    model = LinkModel(Shape(rate_bps=80_000, delay_s=1), LARGE_QUEUE, Random(1))
    first = model.on_packet(1000, now=0)
    model.reshape(Shape(rate_bps=8_000_000), LARGE_QUEUE)
    assert first == 1100 * MILLISECOND
    assert model.on_packet(1000, now=0) == first  # faster now, but it does not overtake


@given(arrivals, rates)
def test_the_rate_is_never_exceeded_over_any_window(
    gaps_and_sizes: list[tuple[int, int]], rate: float
) -> None:
    model = LinkModel(Shape(rate_bps=rate, delay_s=0.1), LARGE_QUEUE, Random(1))
    out = arrived(run(model, gaps_and_sizes))
    for first, (begin, _) in enumerate(out):
        carried = 0
        for end, size in out[first + 1 :]:
            carried += size
            assert carried * 8 * SECOND <= rate * (end - begin) + 1e-3 * rate


@given(arrivals, rates, st.floats(0, 0.2), st.floats(0, 0.2), st.floats(0, 0.9))
def test_packets_arrive_in_order_and_never_before_rate_and_delay_allow(
    gaps_and_sizes: list[tuple[int, int]], rate: float, delay: float, jitter: float, loss: float
) -> None:
    shape = Shape(rate_bps=rate, delay_s=delay, jitter_s=jitter, loss=loss)
    fates = run(LinkModel(shape, 20_000, Random(3)), gaps_and_sizes)
    assert all(a <= b for (a, _), (b, _) in pairwise(arrived(fates)))
    for came, size, fate in fates:
        if not isinstance(fate, Drop):
            soonest = size * 8 * SECOND / rate + max(0.0, delay - jitter) * SECOND
            assert fate - came >= soonest - 2


@given(arrivals, rates, st.integers(0, 20_000), st.floats(0, 1))
def test_every_packet_arrives_or_is_dropped_for_a_reason(
    gaps_and_sizes: list[tuple[int, int]], rate: float, queue: int, loss: float
) -> None:
    fates = run(LinkModel(Shape(rate_bps=rate, loss=loss), queue, Random(3)), gaps_and_sizes)
    dropped = [fate for _, _, fate in fates if isinstance(fate, Drop)]
    assert len(arrived(fates)) + len(dropped) == len(gaps_and_sizes)
    if loss == 0:
        assert Drop.LOSS not in dropped


@given(arrivals, rates, st.integers(1514, 20_000))
def test_no_packet_waits_longer_than_the_queue_is_long(
    gaps_and_sizes: list[tuple[int, int]], rate: float, queue: int
) -> None:
    fates = run(LinkModel(Shape(rate_bps=rate), queue, Random(3)), gaps_and_sizes)
    for came, _, fate in fates:
        if not isinstance(fate, Drop):
            longest = (queue + 1514) * 8 * SECOND / rate
            assert fate - came <= longest + len(fates)


@given(arrivals, st.integers())
def test_the_same_seed_gives_the_same_fates(
    gaps_and_sizes: list[tuple[int, int]], seed: int
) -> None:
    shape = Shape(rate_bps=1e6, delay_s=0.05, jitter_s=0.02, loss=0.3)
    assert run(LinkModel(shape, 9000, Random(seed)), gaps_and_sizes) == run(
        LinkModel(shape, 9000, Random(seed)), gaps_and_sizes
    )


def test_losses_come_as_often_as_asked() -> None:
    model = LinkModel(Shape(loss=0.2), 0, Random(5))
    lost = sum(model.on_packet(100, now) is Drop.LOSS for now in range(10_000))
    assert 1_800 < lost < 2_200


def test_jitter_spreads_the_delay_to_both_sides() -> None:
    model = LinkModel(Shape(delay_s=0.1, jitter_s=0.05), 0, Random(5))
    delays = []
    for now in range(0, 1000 * SECOND, SECOND):
        fate = model.on_packet(100, now)
        assert not isinstance(fate, Drop)
        delays.append((fate - now) / SECOND)
    assert 0.05 <= min(delays) < 0.06
    assert 0.14 < max(delays) <= 0.15


def test_a_link_that_was_cut_is_empty_when_it_comes_back() -> None:
    model = LinkModel(Shape(rate_bps=80_000, delay_s=1), 2000, Random(1))
    for _ in range(3):
        model.on_packet(1000, now=0)
    model.clear()
    assert model.on_packet(1000, now=0) == 1100 * MILLISECOND
