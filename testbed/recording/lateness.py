"""The lateness of publications and actions: the time from when they were due to when they began."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness of `n` publications or actions, in seconds."""

    n: int
    p50_s: float
    p99_s: float
    max_s: float


def lateness(late_ns: Iterable[int]) -> Lateness | None:
    """The lateness of these; None without any."""
    ordered = sorted(late_ns)
    if not ordered:
        return None
    p50, p99 = (quantile(ordered, share) / 1e9 for share in (0.50, 0.99))
    return Lateness(len(ordered), p50, p99, ordered[-1] / 1e9)


def quantile(ordered: list[int], share: float) -> float:
    """Linear between neighbours, as the analysis computes percentiles."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def sentence(late: Lateness | dict[str, Any], what: str = "publications") -> str:
    """The lateness as a sentence."""
    values = late if isinstance(late, dict) else {name: getattr(late, name) for name in FIELDS}
    p50, p99, most = (values[name] * 1000 for name in FIELDS[1:])
    return f"{what} began {p50:.1f} ms (p50), {p99:.1f} ms (p99), at most {most:.1f} ms after their time"


FIELDS = ("n", "p50_s", "p99_s", "max_s")
