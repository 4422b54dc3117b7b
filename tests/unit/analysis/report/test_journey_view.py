"""The timeline of single alerts: which alerts are shown, and what their bars mean."""

import re
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.metrics.hops import on_path
from analysis.report.sections import journeys
from analysis.report.sections.journeys import Journey

SECOND = 1_000_000_000
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("receiver", pa.string()),
        ("priority", pa.int32()),
        ("topic", pa.string()),
        ("path", pa.list_(pa.string())),
        ("hops", pa.int32()),
        ("delay_s", pa.float64()),
        ("published_ns", pa.int64()),
    ]
)


def delivery(number: int, delay_s: float | None, priority: int = 5) -> dict[str, Any]:
    return {
        "id": f"{number:016x}",
        "receiver": "town",
        "priority": priority,
        "topic": "alerts",
        "path": ["sensor", "broker", "town"],
        "hops": 2,
        "delay_s": delay_s,
        "published_ns": 7 * SECOND,
    }


def hop(
    number: int, src: str, dst: str, times: tuple[int | None, ...], as_hop: int | None = None
) -> dict[str, Any]:
    names = ("ready_ns", "sent_first_ns", "sent_last_ns", "received_last_ns")
    ends = [None if at is None else 7 * SECOND + at for at in times]
    causes = {f"{cause}_s": 0.1 for cause in journeys.CAUSES}
    return {
        "id": f"{number:016x}",
        "src": src,
        "dst": dst,
        "hops": as_hop or (1 if src == "sensor" else 2),
        **dict(zip(names, ends, strict=True)),
        **causes,
    }


@given(st.lists(st.tuples(st.sampled_from([1, 5]), st.one_of(st.none(), st.floats(0.001, 50)))))
def test_the_slowest_and_the_middle_one_of_the_most_urgent_level_are_shown(outcomes):
    rows = [delivery(n, delay, level) for n, (level, delay) in enumerate(outcomes)]
    picked = journeys.chosen(pa.Table.from_pylist(rows, schema=SCHEMA))
    urgent = max((level for level, _ in outcomes), default=0)
    came = sorted(delay for level, delay in outcomes if level == urgent and delay is not None)
    found = {what: row["delay_s"] for what, row in picked}
    if not came:
        assert found == {}
        return
    assert found["slowest"] == came[-1]
    expected = sum(level == urgent for level, _ in outcomes)
    if (expected + 1) // 2 < len(came):
        faster = sum(delay < found["median"] for delay in came)
        slower = sum(delay > found["median"] for delay in came) + expected - len(came)
        assert max(faster, slower) <= expected / 2
    else:
        assert list(found) == ["slowest"]


def journey(*hops: dict[str, Any], path: tuple[str, ...] = ("sensor", "broker", "town")) -> Journey:
    row = {**delivery(3, 1.0), "path": list(path), "hops": len(path) - 1}
    return Journey("slowest", row, on_path(row, hops))


HOPS = (
    hop(3, "broker", "town", (400_000_000, 600_000_000, 700_000_000, SECOND)),
    hop(3, "sensor", "broker", (0, 100_000_000, 100_000_000, 400_000_000)),
    hop(4, "sensor", "broker", (0, 1, 2, 3)),  # another message
    hop(3, "broker", "siren", (400_000_000, 1, 2, 3)),  # another receiver
)


def test_bars_follow_each_other_from_publication_to_arrival():
    rows = journeys.bars(journey(*HOPS))
    assert [row["stage"] for row in rows] == ["waited", "sending", "crossing"] * 2
    assert [row["hop"] for row in rows[::3]] == ["1. sensor → broker", "2. broker → town"]
    assert (rows[0]["begin_s"], rows[-1]["end_s"]) == (0.0, 1.0)
    assert all(before["end_s"] == after["begin_s"] for before, after in pairwise(rows))
    assert sum(row["end_s"] - row["begin_s"] for row in rows) == pytest.approx(1.0)


def test_a_link_that_was_crossed_twice_has_both_of_its_hops():
    there, back, again = (
        hop(3, *ends, (at, at, at, at + 1), as_hop=number)
        for number, (ends, at) in enumerate(
            [(("a", "b"), 10), (("b", "a"), 20), (("a", "b"), 30)], start=2
        )
    )
    found = journey(again, back, there, path=("sensor", "a", "b", "a", "b"))
    assert found.hops == (None, there, back, again)


def test_a_hop_without_captures_is_left_out_of_the_bars_and_a_dash_in_the_table():
    half = hop(3, "broker", "town", (400_000_000, None, None, SECOND))
    found = journey(half)
    assert journeys.bars(found) == []
    first, second = journeys.cause_rows(found)
    assert (first["src"], first["took"], first["queue"]) == ("sensor", None, None)
    assert (second["dst"], second["took"], second["queue"]) == ("town", 0.6, 0.1)


def test_stages_differ_by_height_and_each_hop_says_how_long_it_took():
    found = journey(*HOPS)
    text = str(journeys.draw([("the slowest", journeys.bars(found))], "label"))
    labels = [label.replace("\u00a0", " ") for label in re.findall(r">([^<>]+)<", text)]
    assert {"the slowest", "400 ms", "600 ms", "1. sensor → broker"} <= set(labels)
    assert len({style["height"] for style in journeys.STYLES.values()}) == 3
