"""Processor time of other processes, to the nanosecond: all their threads, also those that have ended."""

import time

_OF_A_PROCESS = 2  # what Linux counts: time on a processor, by the scheduler's clock


def processor_s(pid: int) -> float:
    """So far. The number of another process' clock is made of its own number (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | _OF_A_PROCESS)
