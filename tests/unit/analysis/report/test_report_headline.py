"""The report's headline: outcome, delay and cost of the most urgent level."""

import math
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.report.sections import headline

METHODS = {"siren": "preemptive", "town": "preemptive", "town-fifo": "fifo", "broker": "fifo"}


def summary(
    late: int | None, deadline_s: float | None, delivered: int = 8, p99: float | None = 1.5
) -> dict[str, Any]:
    count = {"expected": 9, "delivered": delivered, "late": late, "deadline_s": deadline_s}
    return {
        "by_priority": {"5": count, "1": {**count, "late": 7}},
        "delay_s": {"5": {"p50": 0.2, "p99": p99, "max": 2.0, "not_within_s": {"p99": 31.2}}},
        "overhead": {"payload_bytes": 1000, "wire_bytes": 1250},
    }


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        (
            summary(2, 1.0),
            "99 % of them arrived within 1.50 s. 2 of those that arrived (25 %) missed their deadline of 1.00 s. "
            "The links carried 1.25 bytes for each byte of payload, over all levels.",
        ),
        (
            summary(0, 2.0, p99=None),
            "99 % of them did not arrive within 31 s. None arrived after its deadline of 2.00 s. "
            "The links carried 1.25 bytes for each byte of payload, over all levels.",
        ),
        (
            summary(None, None, delivered=0),
            "The level has no deadline. "
            "The links carried 1.25 bytes for each byte of payload, over all levels.",
        ),
        (
            {"by_priority": {}, "delay_s": {}, "overhead": {"payload_bytes": 0, "wire_bytes": 9}},
            "",
        ),
    ],
)
def test_sentences_report_the_tail_the_deadline_and_the_cost(metrics, text):
    assert " ".join(headline.sentences(metrics)).replace("\u00a0", " ") == text


def table(rows: list[tuple[str, int, float | None, bool | None]]) -> pa.Table:
    receivers, levels, delays, late = zip(*rows, strict=True)
    return pa.table(
        {
            "receiver": pa.array(receivers, pa.string()),
            "priority": pa.array(levels, pa.int32()),
            "delay_s": pa.array(delays, pa.float64()),
            "late": pa.array(late, pa.bool_()),
            "observed_s": pa.array([31.0] * len(rows), pa.float64()),
        }
    )


outcomes = st.tuples(
    st.sampled_from(["siren", "town", "town-fifo"]),
    st.sampled_from([1, 5]),
    st.one_of(st.none(), st.floats(0.001, 100)),
).map(lambda row: (*row, None if row[2] is None else row[2] > 2))


@given(st.lists(outcomes, max_size=40))
def test_deliveries_are_grouped_by_the_method_of_their_receiver(rows):
    rows = [("siren", 5, 0.1, False), ("town-fifo", 5, 0.3, False), *rows]
    links = [
        {"link": link, "wire_bytes": number * 3, "payload_bytes": number * 2}
        for number, link in enumerate(METHODS, start=1)
    ]
    reported = headline.method_rows(table(rows), links, METHODS)
    assert [row["method"] for row in reported] == ["fifo", "preemptive"]
    for row in reported:
        mine = [r for r in rows if r[1] == 5 and METHODS[r[0]] == row["method"]]
        came = [delay for _, _, delay, _ in mine if delay is not None]
        assert (row["expected"], row["delivered"]) == (len(mine), len(came))
        assert row["late"] == sum(delay > 2 for delay in came)
        middle = median([math.inf if delay is None else delay for _, _, delay, _ in mine])
        assert row["p50"] == (pytest.approx(middle) if middle < math.inf else None)
        assert row["max"] == (max(came) if len(came) == len(mine) else None)
        assert ("max" in row["not_within_s"]) == (len(came) < len(mine))
        assert row["cost"] == 1.5


def test_the_brokers_own_link_is_not_part_of_the_cost_of_a_method():
    links = [
        {"link": "siren", "wire_bytes": 30, "payload_bytes": 20},
        {"link": "town-fifo", "wire_bytes": 50, "payload_bytes": 20},
        {"link": "broker", "wire_bytes": 9000, "payload_bytes": 20},
    ]
    rows = table([("siren", 5, 0.1, None), ("town-fifo", 5, 0.3, None)])
    reported = {row["method"]: row for row in headline.method_rows(rows, links, METHODS)}
    assert (reported["fifo"]["cost"], reported["preemptive"]["cost"]) == (2.5, 1.5)
    assert reported["fifo"]["late"] is None


def test_one_method_is_not_compared_with_itself():
    rows = table([("siren", 5, 0.1, None), ("town", 5, 0.3, None)])
    assert headline.method_rows(rows, [], METHODS) == []
