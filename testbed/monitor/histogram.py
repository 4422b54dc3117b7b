"""Many durations in a few numbers that can be added up: how many were at most so long."""

from collections import Counter
from collections.abc import Iterable

FINEST_US = 64  # nobody needs to tell shorter delays apart
_SIGNIFICANT_BITS = 6


def upper_us(duration_ns: int) -> int:
    """The duration in microseconds, rounded up to 6 significant bits (at most 3 % too much) and to whole 64."""
    us = -(-duration_ns // 1000)
    shift = max(FINEST_US.bit_length() - 1, us.bit_length() - _SIGNIFICANT_BITS)
    return -(-us >> shift) << shift


def histogram(durations_ns: Iterable[int]) -> list[list[int]]:
    """[upper bound in microseconds, how many], in order."""
    counts = Counter(upper_us(duration) for duration in durations_ns)
    return [[upper, counts[upper]] for upper in sorted(counts)]


def power_of_two_histogram(counts: Iterable[int]) -> list[list[int]]:
    """The same from counts by the bit length of the microseconds, as the relay keeps them."""
    return [[1 << bits, count] for bits, count in enumerate(counts) if count]
