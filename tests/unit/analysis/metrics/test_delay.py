"""The metric `delay`: percentiles over all expected deliveries, everything else over those that were made."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics.delay import PARTS, SCHEMA, delay

NEEDED = pa.schema(
    [
        ("priority", pa.int32()),
        ("status", pa.string()),
        ("delay_s", pa.float64()),
        ("observed_s", pa.float64()),
        ("duplicates", pa.int64()),
        ("hops", pa.int32()),
        ("deadline_s", pa.float64()),
        ("late", pa.bool_()),
        ("out_of_order", pa.bool_()),
        *((part, pa.float64()) for part in PARTS),
        ("delay_error_s", pa.float64()),
    ]
)
MISSING: dict[str, Any] = {"status": "lost", "duplicates": 0, "observed_s": 31.0}


def came(delay_s: float, **changed: Any) -> dict[str, Any]:
    row = {
        "priority": 5,
        "status": "delivered",
        "delay_s": delay_s,
        "observed_s": 31.0,
        "duplicates": 0,
        "hops": 2,
        "out_of_order": False,
        **dict.fromkeys(PARTS, delay_s / 4),
        "delay_error_s": 0.0,
    }
    return {**row, **changed}


def missing(observed_s: float = 31.0, priority: int = 5) -> dict[str, Any]:
    return {**MISSING, "observed_s": observed_s, "priority": priority}


def measured(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = delay(pa.Table.from_pylist(rows, NEEDED))
    assert found.schema == SCHEMA
    return found.to_pylist()


def test_a_level_of_which_60_percent_have_not_come_has_no_median() -> None:
    (row,) = measured([came(0.5 + n / 10) for n in range(4)] + [missing()] * 6)
    assert (row["expected"], row["delivered"], row["lost"]) == (10, 4, 6)
    assert [row[name] for name in ("p50", "p95", "p99", "max")] == [None] * 4
    assert [row[f"{name}_not_within_s"] for name in ("p50", "p95", "p99", "max")] == [31.0] * 4
    assert row["mean"] == pytest.approx(0.65)
    assert row["mean"] == pytest.approx(sum(row[part] for part in PARTS))


def test_a_tail_that_is_missing_leaves_the_median_known() -> None:
    (row,) = measured([came(float(n)) for n in range(1, 20)] + [missing(12.0)])
    assert (row["p50"], row["p50_not_within_s"]) == (10.5, None)
    assert (row["p99"], row["max"]) == (None, None)
    assert row["max_not_within_s"] == 19.0  # longer than the missing one was observed


def test_a_level_of_which_nothing_came_has_a_row() -> None:
    first, second = measured([missing(priority=1), came(1.0)])
    assert (first["priority"], second["priority"]) == (5, 1)
    assert (second["delivered"], second["mean"], second["hops_mean"]) == (0, None, None)
    assert (second["late"], second["queue_s"], second["delay_error_s"]) == (None, None, None)
    assert measured([]) == []


def test_counts_and_errors() -> None:
    rows = [
        came(1.0, deadline_s=2.0, late=False, duplicates=2, delay_error_s=0.1, hops=1),
        came(3.0, deadline_s=2.0, late=True, out_of_order=True, delay_error_s=0.3, hops=4),
        {**missing(), "deadline_s": 2.0},
    ]
    (row,) = measured(rows)
    assert (row["late"], row["duplicates"], row["out_of_order"]) == (1, 2, 1)
    assert (row["hops_mean"], row["hops_max"]) == (2.5, 4)
    assert (row["delay_error_s"], row["delay_error_max_s"]) == (pytest.approx(0.2), 0.3)


@given(st.lists(st.one_of(st.none(), st.floats(0.001, 100)), min_size=1, max_size=50))
def test_percentiles_count_what_has_not_come(delays: list[float | None]) -> None:
    (row,) = measured([missing(200.0) if one is None else came(one) for one in delays])
    endless = np.array([math.inf if one is None else one for one in delays])
    for name, share in (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100)):
        upper = float(np.percentile(endless, share, method="higher"))
        if math.isinf(upper):
            assert row[name] is None
            assert row[f"{name}_not_within_s"] > 0
        else:
            assert row[name] <= upper * (1 + 1e-12)
            assert row[f"{name}_not_within_s"] is None
