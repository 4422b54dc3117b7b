"""How far chance alone may lead: what would 999 of 1,000 measurements of a link that is as asked show? Pure."""

import math
from functools import cache

CONFIDENCE = 0.999


def at_least(count: int, trials: int, share: float) -> float:
    """The probability of `count` or more successes in so many trials, each with this chance."""
    if count <= 0:
        return 1.0
    if count > trials or share <= 0:
        return 0.0
    if share >= 1:
        return 1.0
    log_share, log_rest = math.log(share), math.log1p(-share)
    log_all = math.lgamma(trials + 1)
    terms = (
        math.exp(
            log_all
            - math.lgamma(n + 1)
            - math.lgamma(trials - n + 1)
            + n * log_share
            + (trials - n) * log_rest
        )
        for n in range(count, trials + 1)
    )
    return min(1.0, math.fsum(terms))


def plausible(count: int, trials: int, share: float, confidence: float = CONFIDENCE) -> bool:
    """Whether so many successes are within the two-sided interval of this chance."""
    tail = (1 - confidence) / 2
    many = at_least(count, trials, share)
    few = 1 - at_least(count + 1, trials, share)
    return many >= tail and few >= tail


@cache
def median_reach(samples: int, confidence: float = CONFIDENCE) -> float:
    """How far the median of so many values, uniform between -1 and 1, may be from 0.

    It is beyond x if at least half of the values are, and each is with a chance of (1 - x) / 2.
    """
    if samples < 1:
        return 1.0
    half = (samples + 1) // 2
    near, far = 0.0, 1.0
    for _ in range(40):
        middle = (near + far) / 2
        if 2 * at_least(half, samples, (1 - middle) / 2) > 1 - confidence:
            near = middle
        else:
            far = middle
    return far
