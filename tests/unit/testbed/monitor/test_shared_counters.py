"""The numbers that the keeper's processes share."""

import os
import subprocess
import sys

from testbed.links.relay.switch import Counters
from testbed.monitor.shared_counters import (
    VARIABLE,
    make_shared_memory,
    open_shared_counters,
    private_counters,
)

WRITER = """
from testbed.monitor.shared_counters import open_shared_counters
shared = open_shared_counters()
shared.capture_dropped = 7
shared.relay_late[3] += 2
"""


def test_counters_written_by_one_process_are_read_by_another() -> None:
    memory = make_shared_memory()
    try:
        environment = {VARIABLE: f"/proc/{os.getpid()}/fd/{memory}"}
        mine = open_shared_counters(environment)
        subprocess.run(
            [sys.executable, "-c", WRITER], env={**os.environ, **environment}, check=True
        )
        assert mine.capture_dropped == 7
        assert mine.relay_late[3] == 2
    finally:
        os.close(memory)


def test_without_a_keeper_a_process_writes_for_itself() -> None:
    for environment in ({}, {VARIABLE: "/proc/1/fd/no-such"}):
        shared = open_shared_counters(environment)
        shared.capture_dropped = 3
        assert shared.capture_dropped == 3


def test_the_relays_peak_is_reported_once() -> None:
    shared = private_counters()
    counters = Counters(shared)
    for late_ns in (5_000, 90_000, 20_000):
        counters.delivered(late_ns)
    assert shared.take_relay_peak_ns() == 90_000
    assert shared.take_relay_peak_ns() == 0
    counters.delivered(1_000)
    assert shared.take_relay_peak_ns() == 1_000
    assert counters.late_max_ns == 90_000


def test_a_new_relay_counts_from_zero() -> None:
    shared = private_counters()
    Counters(shared).delivered(5_000)
    assert sum(shared.relay_late) == 1
    shared.begin_relay()
    assert sum(shared.relay_late) == shared.relay_peak_ns[0] == 0
