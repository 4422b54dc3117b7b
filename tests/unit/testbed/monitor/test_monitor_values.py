"""The values that the monitor reads from the kernel's texts, and its count of late wake-ups."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.monitor import proc
from testbed.monitor.proc import Used, find_limit
from testbed.monitor.sampler import FINEST_US, histogram, power_of_two_histogram, upper_us
from testbed.monitor.worker import MOST_MISSED, WakeupTimer

MS = 1_000_000


def test_processor_time_is_idle_also_while_a_disk_is_waited_for() -> None:
    stat = b"cpu  10 1 5 100 20 2 3 4 9 9\ncpu0 10 1 5 100 20 2 3 4 9 9\nintr 5\n"
    assert proc.ticks(stat) == proc.Ticks(total=145, idle=120, stolen=4)


@pytest.mark.parametrize("text", [b"", b"cpu 1 2 3\n", b"intr 1 2 3 4 5 6 7 8 9\n"])
def test_a_kernel_without_processor_statistics_is_no_error(text: bytes) -> None:
    assert proc.ticks(text) is None


def test_the_number_of_runnable_processes_is_read() -> None:
    assert proc.running(b"0.20 0.18 0.12 3/80 11206\n") == 3
    assert proc.running(b"") is None


def test_pressure_is_read_where_the_kernel_has_it() -> None:
    text = (
        b"some avg10=0.62 avg60=0.45 avg300=0.34 total=47362795\nfull avg10=0.28 total=30638040\n"
    )
    assert proc.stalled_us(text) == 47362795
    assert proc.stalled_us(b"") is None


def test_memory_and_swap_are_read() -> None:
    meminfo = b"MemTotal:       24682416 kB\nMemFree: 1 kB\nMemAvailable:   23907604 kB\n"
    assert proc.memory_bytes(meminfo, b"MemAvailable") == 23907604 * 1024
    assert proc.memory_bytes(meminfo, b"SwapTotal") is None
    assert proc.named(b"nr_free_pages 5\npswpin 7\npswpout 8\n", b"pswpin") == 7


@given(st.integers(0, 10**13))
def test_a_duration_is_rounded_up_by_at_most_3_percent_or_64_microseconds(duration_ns: int) -> None:
    upper_ns = upper_us(duration_ns) * 1000
    assert duration_ns <= upper_ns
    assert upper_ns - duration_ns <= max(duration_ns / 32, FINEST_US * 1000) + 1000


@given(st.lists(st.integers(0, 10**10)))
def test_a_histogram_counts_every_duration_once_and_in_order(durations: list[int]) -> None:
    pairs = histogram(durations)
    assert sum(count for _, count in pairs) == len(durations)
    assert pairs == sorted(pairs)
    assert len({upper for upper, _ in pairs}) == len(pairs)


def test_the_relays_counts_become_upper_bounds() -> None:
    assert power_of_two_histogram([2, 0, 0, 5]) == [[1, 2], [8, 5]]


def test_a_wakeup_in_time_is_late_by_its_own_delay() -> None:
    wakeups = WakeupTimer(due_ns=100, period_ns=10)
    assert wakeups.on_wakeup(103) == [3]
    assert wakeups.due_ns == 110
    assert wakeups.on_wakeup(109) == []


def test_each_missed_wakeup_counts() -> None:
    wakeups = WakeupTimer(due_ns=0, period_ns=10 * MS)
    assert wakeups.on_wakeup(35 * MS) == [35 * MS, 25 * MS, 15 * MS, 5 * MS]
    assert wakeups.due_ns == 40 * MS


@given(st.lists(st.integers(0, 10**9), max_size=50), st.integers(1, 10**8))
def test_after_any_wakeup_the_next_time_lies_ahead_and_none_is_forgotten(
    steps: list[int], period_ns: int
) -> None:
    wakeups = WakeupTimer(due_ns=period_ns, period_ns=period_ns)
    now = counted = 0
    for step in steps:
        now += step
        passed = max(0, (now - wakeups.due_ns) // period_ns + 1)
        delays = wakeups.on_wakeup(now)
        counted += passed
        assert len(delays) == min(passed, MOST_MISSED)
        assert all(0 <= delay <= now for delay in delays)
        assert now < wakeups.due_ns <= now + period_ns
    assert counted == now // period_ns


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def test_a_containers_limit_is_found_in_version_2(tmp_path: Path) -> None:
    stat = "usage_usec 5000\nnr_throttled 2\nthrottled_usec 70\n"
    write(tmp_path, {"cpu.max": "150000 100000\n", "cpu.stat": stat})
    limit = find_limit(4, tmp_path)
    assert limit is not None
    assert limit.cores == 1.5
    assert limit.used() == Used(5_000_000, 70_000)


def test_a_containers_limit_is_found_in_version_1(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "cpu/cpu.cfs_quota_us": "50000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
            "cpu/cpu.stat": "nr_periods 1\nthrottled_time 44\n",
            "cpuacct/cpuacct.usage": "123\n",
        },
    )
    limit = find_limit(2, tmp_path)
    assert limit is not None
    assert (limit.cores, limit.used()) == (0.5, Used(123, 44))


@pytest.mark.parametrize("text", ["max 100000\n", "400000 100000\n", "", "odd\n"])
def test_no_limit_or_one_beyond_the_machine_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cpu.max").write_text(text)
    assert find_limit(4, tmp_path) is None


def test_a_limit_without_usage_statistics_is_not_judged(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    limit = find_limit(4, tmp_path)
    assert limit is not None
    assert limit.used() is None
