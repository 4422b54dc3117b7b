"""Chance, one source per direction of a link: the same in each run with the same seed, whatever the other links do."""

from random import Random


def direction_random(seed: int | None, link: str, direction: str) -> Random:
    """Loss and jitter of one direction; without a seed they differ each time."""
    return Random() if seed is None else Random(f"{seed}/{link}/{direction}")
