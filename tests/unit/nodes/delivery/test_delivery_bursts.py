"""Emergencies that come together, as alerts of several slopes do: preemptive hands them over as fifo does.

Nothing could come before them, so holding them back would gain nothing. As much as TCP's first window leaves so from
the first message of a connection on, when nothing is known of the link.
"""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodes.delivery import METHODS
from nodes.protocol.labels import form_and_level
from support.nodes.simulated_link import SimulatedLink, burst, drive

FIRST_WINDOW = 10 * 1448


def as_late_as_fifo(make: dict[str, float], sizes: list[int], at: float, reading: bool) -> None:
    before = [(0.0, bytes(300), 1)] if reading and at > 0 else []
    ours, theirs = (
        burst(METHODS[method].scheduler({}), SimulatedLink(**make), sizes, at, before)  # type: ignore[arg-type]
        for method in ("preemptive", "fifo")
    )
    for mine, other in zip(ours, theirs, strict=True):
        assert mine <= 1.1 * other + 0.005


@given(
    rate=st.sampled_from([2_000, 7_000, 10_000, 48_000, 300_000, 5_000_000]),
    one_way_s=st.sampled_from([0.0, 0.02, 0.06, 0.3]),
    jitter_part=st.sampled_from([0.0, 0.25, 1.0]),
    lossy=st.booleans(),
    sizes=st.lists(st.integers(30, 1_000), min_size=1, max_size=14),
    at=st.sampled_from([0.0, 0.01, 5.0]),
    reading=st.booleans(),
    seed=st.integers(1, 1_000),
)
@settings(max_examples=60, deadline=None)
def test_a_burst_of_emergencies_is_as_fast_as_under_fifo(
    rate: int,
    one_way_s: float,
    jitter_part: float,
    lossy: bool,
    sizes: list[int],
    at: float,
    reading: bool,
    seed: int,
) -> None:
    link = {
        "rate": rate,
        "there_s": one_way_s,
        "back_s": one_way_s,
        "jitter_s": jitter_part * one_way_s,
        "loss": 0.02 if lossy else 0.0,
        "again_s": 0.2 + 2 * one_way_s,
        "seed": seed,
    }
    as_late_as_fifo(link, sizes, at, reading)


def test_alerts_of_three_slopes_on_the_link_of_a_siren() -> None:
    link = SimulatedLink(10_000, 0.06, 0.06, jitter_s=0.015)
    delays = burst(METHODS["preemptive"].scheduler({}), link, [240, 240, 240])
    packet_s = (240 + 1 + 4 + 66) / 10_000
    assert delays[-1] == pytest.approx(0.06 + 3 * packet_s, abs=0.015)


def test_control_messages_are_not_held_back_either() -> None:
    scheduler = METHODS["preemptive"].scheduler({})
    scheduler.on_link_up(1444, 0.0)
    for _ in range(3):
        scheduler.offer(b"subscribed", 1, 0.0, control=True)
    for handed in range(1, 4):
        assert scheduler.next_chunk(0.0) is not None
        scheduler.on_progress(15 * handed, 0.0, 0.1)


@pytest.mark.parametrize("method", ["pq-pc", "dmpq-pc"])
def test_the_methods_of_the_thesis_send_one_at_a_time(method: str) -> None:
    link = SimulatedLink(10_000, 0.06, 0.06)
    delays = burst(METHODS[method].scheduler({}), link, [240, 240, 240])
    assert delays[-1] > 0.06 + 0.12 + 3 * 0.031  # a round trip later


def test_a_long_emergency_keeps_tcps_first_window_under_way_and_no_more() -> None:
    link = SimulatedLink(7_000, 0.1, 0.1)
    scheduler = METHODS["preemptive"].scheduler({})
    run = drive(scheduler, link, 10.0, offers=[(0.0, bytes(100_000), 5)])
    handed = 0
    for at, size in run.chunks:
        assert handed - link.acknowledged(at) < FIRST_WINDOW
        handed += size + 4
    assert run.utilisation(0.0, 10.0) >= 0.98


def test_lower_levels_have_their_share_beside_a_long_emergency() -> None:
    scheduler = METHODS["preemptive"].scheduler({"share_every": 4})
    offers = [(0.0, bytes(100_000), 5), (0.0, bytes(100_000), 1)]
    given_out: list[int] = []
    run = drive(scheduler, SimulatedLink(20_000), 3.0, offers=offers, given_out=given_out.append)
    assert len(run.chunks) > 30
    shares = [number for number, label in enumerate(given_out) if form_and_level(label)[1] == 1]
    assert {later - earlier for earlier, later in pairwise(shares)} == {4}
