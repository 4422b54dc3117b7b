"""Queue and burst rules."""

import pytest

from testbed.links.model import queue_bytes, queue_limit, tbf_burst
from testbed.topology.model import Shape


def test_a_queue_that_is_asked_for_is_taken() -> None:
    assert queue_bytes(Shape(rate_bps=1e6, queue_bytes=3000), 1500) == 3000


def test_otherwise_a_second_of_the_rate_waits() -> None:
    assert queue_bytes(Shape(rate_bps=8e6), 1500) == 1_000_000


@pytest.mark.parametrize("shape", [Shape(rate_bps=8e3), Shape()])
def test_at_least_sixteen_full_frames_wait(shape: Shape) -> None:
    assert queue_bytes(shape, 1500) == 16 * 1514


@pytest.mark.parametrize("rate_bps", [8e3, 56e3, 1e6, 10e6])
def test_a_bucket_holds_one_full_frame(rate_bps: float) -> None:
    assert tbf_burst(rate_bps, 1500) == 1600


def test_a_bucket_grows_with_the_frame() -> None:
    assert tbf_burst(1e6, 9000) == 9014


def test_the_credit_of_a_fast_link_stays_below_a_millisecond() -> None:
    assert tbf_burst(1e9, 1500) / (1e9 / 8) < 0.001


def test_a_bucket_is_as_large_as_asked_but_never_below_a_frame() -> None:
    assert tbf_burst(160e3, 1500, 4_000) == 4_000
    assert tbf_burst(160e3, 1500, 800) == 1_514


@pytest.mark.parametrize("emulator", ["relay", "netem", "tbf"])
def test_the_limit_of_a_queue_is_what_the_emulator_gets(emulator: str) -> None:
    assert queue_limit(emulator, Shape(rate_bps=1e6, queue_bytes=30_000), 1500) == 30_000
    assert queue_limit(emulator, Shape(rate_bps=8e6), 1500) == 1_000_000
    assert queue_limit(emulator, Shape(), 1500) is None


def test_a_bucket_queues_no_less_than_its_burst() -> None:
    assert queue_limit("tbf", Shape(rate_bps=1e6, queue_bytes=1000), 1500) == 1600
    assert queue_limit("relay", Shape(rate_bps=1e6, queue_bytes=1000), 1500) == 1000


def test_a_link_of_no_emulator_of_ours_has_what_was_asked_for() -> None:
    assert queue_limit("boards", Shape(rate_bps=1e6), 1500) is None
    assert queue_limit("boards", Shape(rate_bps=1e6, queue_bytes=3000), 1500) == 3000
