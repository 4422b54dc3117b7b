"""How fast a scenario is played: its times are divided by its speed; links, nodes and `settle` keep theirs."""

from fractions import Fraction


def played_ns(at_ns: int, speed: float) -> int:
    """When that is played, in whole nanoseconds; rounded down, so that what is before the end stays before it."""
    return int(at_ns / Fraction(repr(speed)))


def scenario_ns(played: int, speed: float) -> int:
    """The time of the scenario at which that is played."""
    return int(played * Fraction(repr(speed)))
