"""The comparisons of the benchmark of overlays."""

import pytest

from benchmarks.overlays import fan_beside_psg


def row(method: str, path: float, forwards: float, **other: object) -> dict[str, object]:
    """A row of urgent messages, by default of pattern a among 1,000 nodes."""
    about = {"pattern": "a", "nodes": 1_000, "priority": 5} | other
    return {"method": method, "path": path, "forwards": forwards} | about


def test_fan_is_compared_with_the_shortest_path_and_the_least_cost_of_such_a_path() -> None:
    rows = [
        row("fan-tbps", 1.9, 10),
        row("psg-tbps", 2.0, 3_000),  # the shortest
        row("psg-tbps", 2.05, 100),  # about as short, and cheaper
        row("psg-tbps", 4.0, 1),
        row("psg-tbps", 1.0, 1, priority=4),
        row("psg-tbps", 1.0, 1, pattern="b"),
        row("psg-tbps", 1.0, 1, nodes=10_000),
    ]
    assert fan_beside_psg(rows, "a", 1_000) == (pytest.approx(0.95), pytest.approx(0.1))
