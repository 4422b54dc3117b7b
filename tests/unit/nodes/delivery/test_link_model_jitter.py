"""Links on which acknowledgements come late, though the link is as fast as ever: jitter both ways, and losses.

The links are those of the profiles (docs/explanation/links.md). Jitter of +- j either way lets acknowledgements vary by
4 j.
"""

import pytest

from nodes.delivery import METHODS
from nodes.delivery.link_model import Jitter
from support.nodes.simulated_link import HEADERS, Run, SimulatedLink, drive

MSS = 1448
SEEDS = (101, 102, 103)
FAST = [(100_000, 0.05, 0.0125), (180_000, 0.035, 0.01), (900_000, 0.035, 0.01)]
SLOW = [(8_000, 0.08, 0.02), (10_000, 0.06, 0.015), (16_000, 0.06, 0.015)]
BETWEEN = [(37_500, 0.05, 0.02), (48_000, 0.08, 0.02)]


def packet_s(rate: float) -> float:
    return (MSS + HEADERS) / rate


def backlog(link: SimulatedLink, until: float) -> Run:
    """Much to send from the beginning on."""
    enough = int(link.rate * until / 100_000) + 2
    scheduler = METHODS["dmpq-pc"].scheduler({"dv": 1443, "limit_bytes": 10**9})
    return drive(scheduler, link, until, offers=[(0.0, bytes(100_000), 1)] * enough)


def with_jitter(
    rate: int, one_way_s: float, jitter_s: float, seed: int
) -> tuple[Run, float, float]:
    """The run, and from when to when it is judged."""
    begin = max(20 * packet_s(rate), 50 * one_way_s)
    end = begin + max(100 * packet_s(rate), 1.5)
    return (
        backlog(SimulatedLink(rate, one_way_s, one_way_s, jitter_s=jitter_s, seed=seed), end),
        begin,
        end,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("rate", "one_way_s", "jitter_s", "busy"),
    [
        *((*link, 0.9) for link in FAST),
        *((*link, 0.95) for link in SLOW),
        *((*link, 0.8) for link in BETWEEN),
    ],
)
def test_with_jitter_the_link_is_busy_and_little_more_than_the_jitter_waits_in_the_kernel(
    rate: int, one_way_s: float, jitter_s: float, busy: float, seed: int
) -> None:
    run, begin, end = with_jitter(rate, one_way_s, jitter_s, seed)
    assert run.utilisation(begin, end) >= busy
    waits = sorted(wait - packet_s(rate) for at, wait in run.waits if at >= begin)
    assert waits[int(0.9 * len(waits))] <= 1.5 * 4 * jitter_s + 0.15 * packet_s(rate) + 0.005
    assert waits[-1] <= 3 * 4 * jitter_s + 0.15 * packet_s(rate) + 0.005
    assert run.looks / end <= 1001, "not more often than each millisecond"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("rate", "one_way_s"), [(7_000, 0.0), (20_000, 0.0), (20_000, 0.06)])
def test_occasional_losses_do_not_slow_the_scheduler(
    rate: int, one_way_s: float, seed: int
) -> None:
    link = SimulatedLink(
        rate, one_way_s, one_way_s, loss=0.02, again_s=2 * one_way_s + 0.05, seed=seed
    )
    end = 200 * packet_s(rate)
    run = backlog(link, end)
    assert run.utilisation(end / 5, end) >= 0.9
    assert run.longest_wait(end / 5) <= 2.5 * packet_s(rate)


def test_the_model_follows_a_fast_link_that_becomes_slower() -> None:
    link = SimulatedLink(900_000, 0.035, 0.035, jitter_s=0.01, slower=(4.0, 200_000))
    run = backlog(link, 8.0)
    link.rate = 200_000
    assert run.utilisation(6.0, 8.0) >= 0.9
    assert run.longest_wait(6.0) <= packet_s(200_000) + 6 * 0.04


def test_the_scheduler_stops_on_a_fast_link_that_is_cut_and_uses_it_again() -> None:
    link = SimulatedLink(900_000, 0.035, 0.035, jitter_s=0.01, cut=(4.0, 6.0))
    run = backlog(link, 10.0)
    handed = sum(size + 4 for at, size in run.chunks if at < 5.9)
    assert handed - link.passed(5.9) <= 2 * 900_000 * (0.07 + 0.04)
    assert run.utilisation(8.0, 10.0) >= 0.9


def test_jitter_rises_and_falls_again_unlike_the_delay_of_a_link_that_changes() -> None:
    for lateness, expected in (
        ([0.0] * 40, 0.0),
        ([0.002 * number for number in range(40)], 0.0),  # the link has become slower
        ([-0.002 * number for number in range(40)], 0.0),  # ... faster
        ([0.02 * (number % 2) for number in range(40)], 1.5 * 0.02),
    ):
        jitter = Jitter()
        for number, late in enumerate(lateness):
            at = 0.1 * number + late
            jitter.on_acknowledged(1_000.0 * number, at, at, rate=10_000.0)
        assert jitter.span_s == pytest.approx(expected, abs=1e-9)
