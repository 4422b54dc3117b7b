"""Checks: one sentence, whether it holds (null: not measured in this extent), and the numbers behind it."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

NOT_MEASURED = "not measured"


def check(name: str, ok: bool | None, found: str) -> dict[str, Any]:
    return {"check": name, "ok": ok, "found": found}


def all_hold(
    name: str,
    values: Sequence[tuple[float, str]],
    holds: Callable[[float], bool],
    worst: Literal["largest", "smallest"] = "largest",
) -> dict[str, Any]:
    """Of values with the place where each was found: all must hold, the worst is told."""
    if not values:
        return check(name, None, NOT_MEASURED)
    extreme, where = max(values) if worst == "largest" else min(values)
    right = sum(holds(value) for value, _ in values)
    return check(
        name, right == len(values), f"{right} of {len(values)}; {worst} {extreme:.3g} ({where})"
    )
