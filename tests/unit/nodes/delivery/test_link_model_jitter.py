"""Lines on which acknowledgements come late, though the line is as fast as ever: jitter both ways, and losses.

The lines are those of the profiles (docs/links.md). Jitter of +- j either way lets acknowledgements vary by 4 j.
"""

import pytest

from nodes.delivery import METHODS
from nodes.delivery.link_model import Jitter
from simulated_line import HEADERS, Run, SimulatedLine, drive

MSS = 1448
SEEDS = (101, 102, 103)
FAST = [(100_000, 0.05, 0.0125), (180_000, 0.035, 0.01), (900_000, 0.035, 0.01)]
NARROW = [(8_000, 0.08, 0.02), (10_000, 0.06, 0.015), (16_000, 0.06, 0.015)]
BETWEEN = [(37_500, 0.05, 0.02), (48_000, 0.08, 0.02)]


def packet_s(rate: float) -> float:
    return (MSS + HEADERS) / rate


def backlog(line: SimulatedLine, until: float) -> Run:
    """Much to send from the beginning on."""
    enough = int(line.rate * until / 100_000) + 2
    scheduler = METHODS["dmpq-pc"].scheduler({"dv": 1443, "limit_bytes": 10**9})
    return drive(scheduler, line, until, offers=[(0.0, bytes(100_000), 1)] * enough)


def with_jitter(
    rate: int, one_way_s: float, jitter_s: float, seed: int
) -> tuple[Run, float, float]:
    """The run, and from when to when it is judged."""
    begin = max(20 * packet_s(rate), 50 * one_way_s)
    end = begin + max(100 * packet_s(rate), 1.5)
    return (
        backlog(SimulatedLine(rate, one_way_s, one_way_s, jitter_s=jitter_s, seed=seed), end),
        begin,
        end,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("rate", "one_way_s", "jitter_s", "busy"),
    [
        *((*line, 0.9) for line in FAST),
        *((*line, 0.95) for line in NARROW),
        *((*line, 0.8) for line in BETWEEN),
    ],
)
def test_with_jitter_the_line_is_busy_and_little_more_than_the_jitter_waits_below_us(
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
def test_what_is_lost_now_and_then_does_not_slow_us(rate: int, one_way_s: float, seed: int) -> None:
    line = SimulatedLine(
        rate, one_way_s, one_way_s, loss=0.02, again_s=2 * one_way_s + 0.05, seed=seed
    )
    end = 200 * packet_s(rate)
    run = backlog(line, end)
    assert run.utilisation(end / 5, end) >= 0.9
    assert run.longest_wait(end / 5) <= 2.5 * packet_s(rate)


def test_a_fast_line_that_becomes_slower_is_followed() -> None:
    line = SimulatedLine(900_000, 0.035, 0.035, jitter_s=0.01, slower=(4.0, 200_000))
    run = backlog(line, 8.0)
    line.rate = 200_000
    assert run.utilisation(6.0, 8.0) >= 0.9
    assert run.longest_wait(6.0) <= packet_s(200_000) + 6 * 0.04


def test_a_fast_line_that_is_cut_stops_us_and_is_used_again() -> None:
    line = SimulatedLine(900_000, 0.035, 0.035, jitter_s=0.01, cut=(4.0, 6.0))
    run = backlog(line, 10.0)
    handed = sum(size + 4 for at, size in run.chunks if at < 5.9)
    assert handed - line.passed(5.9) <= 2 * 900_000 * (0.07 + 0.04)
    assert run.utilisation(8.0, 10.0) >= 0.9


def test_jitter_is_what_rises_and_falls_again_and_not_a_line_that_changes() -> None:
    for lateness, expected in (
        ([0.0] * 40, 0.0),
        ([0.002 * number for number in range(40)], 0.0),  # the line has become slower
        ([-0.002 * number for number in range(40)], 0.0),  # ... faster
        ([0.02 * (number % 2) for number in range(40)], 1.5 * 0.02),
    ):
        jitter = Jitter()
        for number, late in enumerate(lateness):
            at = 0.1 * number + late
            jitter.on_acknowledged(1_000.0 * number, at, at, rate=10_000.0)
        assert jitter.span_s == pytest.approx(expected, abs=1e-9)
