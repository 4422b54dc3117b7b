"""Verdicts on expectations equal those of a count by hand; an expectation that cannot be judged has failed."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inputs.run_folder import Run
from analysis.stats.expectations import judge_again, judged
from testbed.topology.parse.expectations import parse

NODES = [
    {"name": "sensors-0", "group": "sensors"},
    {"name": "sensors-1", "group": "sensors"},
    {"name": "siren", "group": None},
    {"name": "offices-0", "group": "offices"},
    {"name": "offices-1", "group": "offices"},
]
SUMMARY: dict[str, Any] = {
    "messages": {"published": 20},
    "overhead": {"wire_bytes": 400, "payload_bytes": 100, "retransmitted_packets": 3},
    "overlay": {"copies_per_publication": 2.5, "control": {"bytes_per_s_per_broker": 120.0}},
    "fidelity": {"reasons": ["busy"]},
}
SCHEMA = pa.schema(
    [
        ("receiver", pa.string()),
        ("origin", pa.string()),
        ("topic", pa.string()),
        ("priority", pa.int32()),
        ("status", pa.string()),
        ("delay_s", pa.float64()),
        ("observed_s", pa.float64()),
        ("hops", pa.int32()),
        ("duplicates", pa.int64()),
        ("handed", pa.int64()),
        ("deadline_s", pa.float64()),
        ("late", pa.bool_()),
        ("out_of_order", pa.bool_()),
    ]
)
Row = dict[str, Any]


def run_expecting(*lines: str) -> Run:
    scenario = {"expect": [asdict(parse(line)) for line in lines]}
    return Run(Path(), {"topology": {"scenario": scenario, "nodes": NODES}}, ())


def verdict(line: str, rows: list[Row], summary: dict[str, Any] = SUMMARY) -> dict[str, Any]:
    (one,) = judged(run_expecting(line), summary, pa.Table.from_pylist(rows, SCHEMA))
    return one


def delivery(**changed: Any) -> Row:
    row = {
        "receiver": "siren",
        "origin": "sensors-0",
        "topic": "alerts",
        "priority": 5,
        "status": "delivered",
        "delay_s": 0.5,
        "observed_s": 31.0,
        "hops": 2,
        "duplicates": 0,
        "handed": 1,
        "deadline_s": None,
        "late": None,
        "out_of_order": False,
    }
    return {**row, **changed}


LOST = {"status": "lost", "delay_s": None, "hops": None, "handed": 0, "out_of_order": None}


@st.composite
def deliveries(draw: st.DrawFn) -> Row:
    row = delivery(
        receiver=draw(st.sampled_from(["siren", "offices-0", "offices-1"])),
        origin=draw(st.sampled_from(["sensors-0", "sensors-1"])),
        topic=draw(st.sampled_from(["alerts", "readings"])),
        priority=draw(st.integers(1, 5)),
        delay_s=draw(st.integers(1, 5_000)) / 1000,
        hops=draw(st.integers(1, 6)),
        duplicates=draw(st.integers(0, 2)),
    )
    return {**row, **LOST} if draw(st.booleans()) else row


def percentile(values: list[float], share: float) -> float:
    """Linear between neighbours, written down from the definition."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    if place == below:
        return ordered[below]
    if math.isinf(ordered[above]):
        return math.inf
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@given(
    st.lists(deliveries(), max_size=30), st.integers(1, 5), st.integers(1, 99), st.integers(0, 5)
)
def test_delays_and_losses_of_a_level_are_those_of_its_deliveries(
    rows: list[Row], level: int, share: int, limit: int
) -> None:
    mine = [row for row in rows if row["priority"] >= level and row["receiver"] != "siren"]
    came = [row["delay_s"] for row in mine if row["status"] == "delivered"]
    reported = verdict(f"level {level}.. node offices delay p{share} < {limit}s", rows)
    endless = [*came, *[math.inf] * (len(mine) - len(came))]
    if mine and math.isfinite(percentile(endless, share)):
        assert reported["found"] == pytest.approx(percentile(endless, share))
        assert reported["ok"] == (reported["found"] < limit)
    else:
        assert (reported["ok"], reported["found"]) == (False, None)
        assert (reported["not_within_s"] is None) == (not mine)
    lost = verdict(f"level {level}.. node offices lost <= {limit}", rows)
    if mine:
        assert lost["found"] == len(mine) - len(came)
        assert lost["ok"] == (len(mine) - len(came) <= limit)
        shared = verdict(f"level {level}.. node offices lost <= {limit}%", rows)
        assert shared["found"] == pytest.approx((len(mine) - len(came)) / len(mine))
    else:
        assert (lost["ok"], lost["found"]) == (False, None)


@pytest.mark.parametrize(
    ("line", "ok", "found"),
    [
        ("published == 20", True, 20),
        ("forwards/message < 2.5", False, 2.5),
        ("forwards/message <= 2.5", True, 2.5),
        ("overhead ratio < 4", False, 4),
        ("overhead ratio != 4", False, 4),
        ("control bytes/s < 300", True, 120),
        ("retransmitted packets == 0", False, 3),
        ("fidelity warnings == 0", False, 1),
    ],
)
def test_the_whole_run_is_judged_from_its_summary(line: str, ok: bool, found: float) -> None:
    reported = verdict(line, [])
    assert (reported["ok"], reported["found"]) == (ok, found)


def test_counts_of_deliveries() -> None:
    rows = [
        delivery(duplicates=2, handed=2),
        delivery(out_of_order=True),
        delivery(**LOST),
        delivery(origin="sensors-1", topic="readings", priority=1),
    ]
    assert verdict("duplicates == 2", rows)["ok"]
    assert verdict("handed twice == 1", rows)["ok"]
    assert verdict("out of order == 1", rows)["ok"]
    assert verdict("delivered == 75%", rows)["ok"]
    assert verdict("from sensors-1 lost == 0", rows)["ok"]
    assert verdict("topic readings delivered == 1", rows)["ok"]
    assert verdict("hops mean == 2", rows)["ok"]


def test_late_is_counted_where_there_is_a_deadline() -> None:
    rows = [
        delivery(deadline_s=1.0, late=False),
        delivery(deadline_s=1.0, late=True),
        delivery(priority=1),
    ]
    assert verdict("late == 50%", rows)["ok"]
    without = verdict("level 1 late == 0", rows)
    assert (without["ok"], without["reason"]) == (False, "these levels have no deadline")


def test_an_expectation_without_publications_is_not_judged_and_has_failed() -> None:
    reported = verdict("level 4 lost == 0", [delivery()])
    assert reported["found"] is None
    assert not reported["ok"]
    assert reported["reason"] == "no such delivery was expected"
    nothing = verdict("level 5 delay max < 5s", [delivery(**LOST)])
    assert (nothing["ok"], nothing["reason"]) == (False, "not within 31 s")
    nothing = verdict("level 5 delay min < 5s", [delivery(**LOST)])
    assert (nothing["ok"], nothing["reason"]) == (False, "nothing of it was delivered")


@pytest.mark.parametrize(
    ("line", "ok", "judged"),
    [
        ("delay p50 < 2s", False, True),  # it takes at least 31 s
        ("delay p50 <= 30.9s", False, True),
        ("delay p50 < 31s", False, True),
        ("delay p50 <= 31s", False, False),
        ("delay p50 < 60s", False, False),
        ("delay p50 > 2s", True, True),
        ("delay p50 >= 31s", True, True),
        ("delay p50 > 31s", False, False),
        ("delay p50 > 60s", False, False),
        ("delay p50 == 2s", False, True),
        ("delay p50 != 2s", True, True),
        ("delay p50 != 60s", False, False),
        ("delay max > 30s", True, True),
        ("delay max < 60s", False, False),
        ("delay p20 < 1s", True, True),  # reached
        ("delay min < 1s", True, True),
        ("delay mean < 100s", False, False),
        ("hops mean == 2", True, True),
    ],
)
def test_a_percentile_that_was_not_reached_is_judged_by_its_bound(
    line: str, ok: bool, judged: bool
) -> None:
    rows = [delivery() for _ in range(4)] + [delivery(**LOST) for _ in range(6)]
    reported = verdict(line, rows)
    assert (reported["ok"], reported["judged"]) == (ok, judged)
    if reported["not_within_s"] is not None:
        assert (reported["found"], reported["reason"]) == (None, "not within 31 s")
    if "mean <" in line:
        assert reported["reason"] == "6 of 10 had not arrived when the run ended"


@given(
    st.lists(deliveries(), min_size=1, max_size=20),
    st.integers(0, 99),
    st.integers(0, 40),
    st.sampled_from(["<", "<=", ">=", ">", "==", "!="]),
    st.data(),
)
def test_what_is_judged_holds_whenever_the_missing_come(
    rows: list[Row], share: int, limit: int, relation: str, data: st.DataObject
) -> None:
    line = f"delay p{share} {relation} {limit}s" if share else f"delay max {relation} {limit}s"
    reported = verdict(line, rows)
    if not reported["judged"] or reported["found"] is not None:
        return
    later = [
        delivery(delay_s=row["observed_s"] + data.draw(st.integers(1, 50)))
        if row["status"] == "lost"
        else row
        for row in rows
    ]
    assert verdict(line, later)["ok"] == reported["ok"]


def test_each_expectation_is_judged_once_even_if_it_is_repeated() -> None:
    table = pa.Table.from_pylist([delivery()], SCHEMA)
    more = [asdict(parse("lost == 0")), asdict(parse("level 5 lost == 0"))]
    reported = judged(run_expecting("lost == 0"), SUMMARY, table, more)
    assert [one["expect"] for one in reported] == ["lost == 0", "level 5 lost == 0"]


def test_a_run_of_an_older_version_expects_nothing() -> None:
    run = Run(Path(), {"topology": {"scenario": {}, "nodes": NODES}}, ())
    assert judged(run, SUMMARY, pa.Table.from_pylist([], SCHEMA)) == []


def test_expectations_added_later_are_kept_when_a_run_is_judged_again(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    pq.write_table(
        pa.Table.from_pylist([delivery()], SCHEMA), tmp_path / "metrics/deliveries.parquet"
    )
    (tmp_path / "summary.json").write_text(json.dumps(SUMMARY))
    run = replace(run_expecting("lost == 0"), folder=tmp_path)
    asked = judge_again(run, [asdict(parse("hops max < 2"))])
    (tmp_path / "summary.json").write_text(json.dumps(asked))
    again = judge_again(run)
    assert again == asked
    reported = [(one["expect"], one["ok"]) for one in again["expectations"]]
    assert reported == [("lost == 0", True), ("hops max < 2", False)]
