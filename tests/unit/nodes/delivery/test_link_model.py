"""The scheduler keeps the link busy and the kernel queue short: on a simulated link, exact to the byte.

The bound: when a message could be handed over, what is in front of it takes at most one piece's time, and 15 % of a
packet's time and 5 ms more.
"""

import pytest

from nodes.delivery import METHODS
from support.nodes.simulated_link import HEADERS, Run, SimulatedLink, drive

MSS = 1448
RATES = [2_000, 7_000, 20_000, 100_000, 1_000_000, 5_000_000]  # bytes a second, headers included
LINKS = [
    (rate, one_way_s, dv)
    for rate in RATES
    for one_way_s in (0.0, 0.02, 0.3)
    for dv in (1443, 10_000)
    if rate * one_way_s * (10_000 / dv) < 5_000_000  # the longest ones take their time to simulate
]


def packet_s(rate: float) -> float:
    return (MSS + HEADERS) / rate


def piece_s(rate: float, dv: int) -> float:
    packets = -(-(dv + 5) // MSS)
    return (dv + 5 + packets * HEADERS) / rate


def backlog(link: SimulatedLink, until: float, dv: int, fastest: float | None = None) -> Run:
    """Much to send from the beginning on."""
    enough = int((fastest or link.rate) * until / 100_000) + 2
    scheduler = METHODS["dmpq-pc"].scheduler({"dv": dv, "limit_bytes": 10**9})
    return drive(scheduler, link, until, offers=[(0.0, bytes(100_000), 1)] * enough)


def bound(rate: float, dv: int) -> float:
    return piece_s(rate, dv) + 0.15 * packet_s(rate) + 0.005


@pytest.mark.parametrize(("rate", "one_way_s", "dv"), LINKS)
def test_the_link_is_busy_and_the_kernel_queue_is_short(
    rate: int, one_way_s: float, dv: int
) -> None:
    packet = packet_s(rate)
    warm = max(20 * packet, 50 * one_way_s, 2 * piece_s(rate, dv) + 0.7)
    until = warm + max(60 * packet, 6 * piece_s(rate, dv), 0.3)
    run = backlog(SimulatedLink(rate, one_way_s, one_way_s), until, dv)
    assert run.utilisation(warm, until) >= 0.95
    assert run.longest_wait(warm) <= bound(rate, dv)
    assert run.looks / until <= 1001, "not more often than each millisecond"


@pytest.mark.parametrize(("rate", "later"), [(20_000, 2_000), (7_000, 20_000), (5_000, 1_000_000)])
@pytest.mark.parametrize("one_way_s", [0.0, 0.1])
def test_the_model_follows_a_link_that_changes(rate: int, later: int, one_way_s: float) -> None:
    link = SimulatedLink(rate, one_way_s, one_way_s, slower=(5.0, later))
    slow = packet_s(min(rate, later))
    end = 5.0 + 40 * slow
    run = backlog(link, end, 1443, fastest=max(rate, later))
    settled = 5.0 + 25 * slow
    link.rate = later
    assert run.utilisation(settled, end) >= 0.95
    assert run.longest_wait(settled) <= bound(later, 1443)


@pytest.mark.parametrize("one_way_s", [0.0, 0.1])
@pytest.mark.parametrize("rate", [7_000, 100_000])
def test_the_scheduler_stops_on_a_link_that_is_cut_and_uses_it_again(
    rate: int, one_way_s: float
) -> None:
    link = SimulatedLink(rate, one_way_s, one_way_s, cut=(5.0, 9.0))
    run = backlog(link, 20.0, 1443)
    handed = sum(size + 4 for at, size in run.chunks if at < 8.9)
    under_way = rate * 2 * one_way_s
    assert handed - link.passed(8.9) <= under_way + 3 * MSS
    assert run.utilisation(13.0, 20.0) >= 0.95


@pytest.mark.parametrize("rate", [7_000, 20_000])
def test_a_token_bucket_that_passes_a_few_packets_at_once_does_not_mislead_the_model(
    rate: int,
) -> None:
    """The tbf of the thesis: a fifth of a second, or one frame."""
    link = SimulatedLink(rate, 0.0, 0.0, bucket=max(1_600, rate / 5))
    scheduler = METHODS["dmpq-pc"].scheduler({})
    period = 150_000 / rate
    run = drive(
        scheduler, link, 4 * period, offers=[(n * period, bytes(100_000), 1) for n in range(4)]
    )
    assert run.longest_wait(0.0) <= 1.75 * packet_s(rate)
    assert run.longest_wait(period) <= 1.5 * packet_s(rate)


@pytest.mark.parametrize("rate", [2_000, 7_000, 20_000])
def test_occasional_late_acknowledgements_do_not_slow_the_scheduler(rate: int) -> None:
    link = SimulatedLink(rate, 0.0, 0.0, every_second=0.04)
    end = 80 * packet_s(rate)
    run = backlog(link, end, 1443)
    assert run.utilisation(end / 4, end) >= 0.95
    assert run.longest_wait(end / 4) <= 1.3 * packet_s(rate)


def test_there_is_no_deadline_when_nothing_waits_and_the_rate_is_known() -> None:
    scheduler = METHODS["pq-pc"].scheduler({})
    drive(scheduler, SimulatedLink(7_000), 10.0, offers=[(0.0, bytes(1_000), 1)])
    assert scheduler.next_deadline() is None


def test_one_message_at_a_time_until_the_first_acknowledgement() -> None:
    scheduler = METHODS["pq-pc"].scheduler({})
    scheduler.on_link_up(1444, 0.0)
    scheduler.offer(b"first", 1, 0.0)
    scheduler.offer(b"second", 1, 0.0)
    scheduler.next_chunk(0.0)
    scheduler.on_progress(9, 0.0, 0.001)
    assert scheduler.next_chunk(0.5) is None
    scheduler.on_progress(0, 0.5, 0.001)
    assert scheduler.next_chunk(0.5) is not None
