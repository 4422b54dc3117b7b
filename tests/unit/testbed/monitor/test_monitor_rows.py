"""A row of machine.jsonl from two samples of the machine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.monitor.proc import Ticks, Used
from testbed.monitor.sampler import Sample, row
from testbed.monitor.shared_counters import LATE_BUCKETS

NOTHING = (0,) * LATE_BUCKETS
SECOND = 1_000_000_000
BEFORE = Sample(
    time_ns=5 * SECOND,
    monotonic_ns=SECOND,
    ticks=Ticks(1000, 400, 10),
    running=1,
    stalled_us={"cpu": 100, "memory": 0, "io": None},
    memory_bytes=1 << 30,
    memory_free_bytes=1 << 29,
    swapped_in_bytes=8192,
    swapped_out_bytes=0,
    used=None,
    capture_dropped=1,
    relay_late=NOTHING,
    relay_peak_ns=0,
)
AFTER = replace(
    BEFORE,
    time_ns=6 * SECOND,
    monotonic_ns=2 * SECOND,
    ticks=Ticks(1200, 450, 20),
    running=3,
    stalled_us={"cpu": 250_100, "memory": 0, "io": None},
    swapped_in_bytes=12288,
    capture_dropped=4,
)


def test_a_row_covers_the_time_between_two_samples() -> None:
    made = row(BEFORE, AFTER, [30_000, 10_000, 20_000_000, 40_000])
    assert made["t"] == 6 * SECOND
    assert made["span_s"] == 1.0
    assert (made["cpu_idle"], made["cpu_stolen"]) == (0.25, 0.05)
    assert made["running"] == 3
    assert (made["pressure_cpu"], made["pressure_memory"], made["pressure_io"]) == (0.25, 0.0, None)
    assert (made["wakeup_p50_s"], made["wakeup_max_s"]) == (3e-05, 0.02)
    assert made["wakeups_us"] == [[64, 3], [20480, 1]]
    assert (made["swapped_in_bytes"], made["swapped_out_bytes"]) == (4096, 0)
    assert made["capture_dropped"] == 4
    assert (made["relay_forwarded"], made["relay_late_max_s"], made["relay_late_us"]) == (
        0,
        None,
        [],
    )


def counted(**buckets: int) -> tuple[int, ...]:
    numbers = list(NOTHING)
    for bucket, count in buckets.items():
        numbers[int(bucket[1:])] = count
    return tuple(numbers)


def test_a_row_shows_how_late_the_relay_was_meanwhile() -> None:
    before = replace(BEFORE, relay_late=counted(b3=5))
    after = replace(AFTER, relay_late=counted(b3=7, b10=1), relay_peak_ns=900_000)
    made = row(before, after, [])
    assert made["relay_forwarded"] == 3
    assert made["relay_late_max_s"] == 0.0009
    assert made["relay_late_us"] == [[8, 2], [1024, 1]]
    assert made["wakeup_max_s"] is None


def test_a_relay_that_began_anew_has_counted_from_zero() -> None:
    before = replace(BEFORE, relay_late=counted(b3=500))
    made = row(before, replace(AFTER, relay_late=counted(b3=7)), [])
    assert made["relay_late_us"] == [[8, 7]]


@pytest.mark.parametrize(("used_s", "idle"), [(0.1, 0.25), (0.45, 0.1), (0.6, 0.0)])
def test_in_a_limited_container_the_limit_counts_if_it_is_nearer(
    used_s: float, idle: float
) -> None:
    before = replace(BEFORE, used=Used(0, 0))
    after = replace(AFTER, used=Used(round(used_s * SECOND), 50_000_000))
    made = row(before, after, [], limit_cores=0.5)
    assert made["cpu_idle"] == pytest.approx(idle)
    assert made["throttled_s"] == 0.05


def test_a_machine_without_statistics_still_has_rows() -> None:
    silent = replace(
        BEFORE, ticks=None, running=None, memory_free_bytes=None, swapped_in_bytes=None
    )
    made = row(silent, replace(silent, monotonic_ns=2 * SECOND), [1])
    assert made["cpu_idle"] is made["running"] is made["swapped_in_bytes"] is None
    assert made["wakeup_max_s"] == 1e-09


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(-(10**6), 10**10),
)
def test_shares_stay_between_nothing_and_all_whatever_the_clocks_do(
    total: int, idle: int, stolen: int, later_ns: int
) -> None:
    after = replace(
        AFTER,
        ticks=Ticks(1000 + total, 400 + idle, 10 + stolen),
        monotonic_ns=BEFORE.monotonic_ns + later_ns,
    )
    made = row(BEFORE, after, [])
    shares = (made[name] for name in ("cpu_idle", "cpu_stolen", "pressure_cpu"))
    assert all(share is None or 0 <= share <= 1 for share in shares)
    assert made["span_s"] >= 0
