"""A collection on real 3G links: every reading arrives once, in joined messages; the analysis measures the delay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.papers.kawakami2016.freshness import trials
from analysis.papers.kawakami2016.real_labs import NAMES, read_labs
from support.overlays.small_collection import (
    DURATION_S,
    LEARNT_S,
    PERIODS,
    READINGS,
    WAIT_MS,
    collection_file,
)
from support.runs.log_agreement import must_agree
from testbed.cli.papers.labs import PaperLab, run_side_by_side
from testbed.jsonfiles import write_json
from testbed.progress import Event
from testbed.records import lab_names

MEASURED_S = DURATION_S - LEARNT_S
SHEET = {
    "trial": 0,
    "sites": len(PERIODS),
    "wait_ms": WAIT_MS,
    "learnt_s": LEARNT_S,
    "measured_s": MEASURED_S,
    "office": "office",
}


@pytest.mark.netns
@pytest.mark.spark
def test_every_reading_arrives_once_over_3g_links_and_captures_show_joined_messages(
    spark: Any, analyzed: Callable[[Path], Any], places: Path
) -> None:
    lab = PaperLab("collects", collection_file("collects"), SHEET)
    events: list[Event] = []
    (run,) = run_side_by_side([lab], places, "netns", events.append)
    assert lab_names() == []
    analyzed(run)
    must_agree(run)
    delivered = pq.read_table(run / "metrics" / "deliveries.parquet").to_pylist()
    assert len(delivered) == READINGS + 1
    assert {row["status"] for row in delivered} == {"delivered"}
    assert {row["handed"] for row in delivered} == {1}
    captured = pq.read_table(run / "metrics" / "messages.parquet").to_pylist()
    publications = [row for row in captured if row["kind"] == "PUBLISH"]
    assert max(row["joined"] for row in publications) > 1
    assert {row["joined"] for row in publications if row["priority"] == 5} == {1}
    assert not [row for row in captured if row["kind"] == "JOINED"], (
        "the analysis splits every joined message"
    )
    for row in delivered:
        assert row["path"][0].startswith("gauges-")
        assert row["path"][-2:] == ["center", "office"]
        assert row["hops"] == len(row["path"]) - 1 >= 3

    write_json(places / NAMES, {"runs": [str(run)], "without": None})
    labs = read_labs(spark, places)
    (measured,) = trials(labs.readings, labs.totals)
    begin_ns = labs_begin_ns(delivered, labs.readings)
    counted = [
        row["delay_s"]
        for row in delivered
        if begin_ns <= row["published_ns"] < begin_ns + MEASURED_S * 1_000_000_000
    ]
    assert measured["missing"] == 0
    assert measured["delay_s"] == pytest.approx(sum(counted) / len(counted))
    assert measured["age_s"] > sum(PERIODS) / len(PERIODS) / 2
    assert 0 < measured["messages"] < 3
    assert measured["line_bytes"] > measured["bytes"] > 0
    assert labs.runs[0]["folder"] == str(run)


def labs_begin_ns(delivered: list[dict[str, Any]], readings: list[Any]) -> int:
    """When the collection began, computed from the first reading of both records."""
    first = min(row["published_ns"] for row in delivered)
    return int(first - round(min(row["published_s"] for row in readings) * 1_000_000_000))
