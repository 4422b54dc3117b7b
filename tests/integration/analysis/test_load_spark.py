"""Load of nodes: Spark's counts equal those of pandas and those by hand; and from cells to Kawakami 2016's fairness."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from analysis.inputs.run_folder import read_run
from analysis.metrics import load, messages
from analysis.metrics import load as of_summary
from analysis.papers.kawakami2016.paper import measure
from analysis.papers.tables import write_tables
from analysis.pipeline import measure as measure_run
from analysis.report.report import write_report
from support.runs.known_broker_run import known_broker_run
from support.runs.overlay_rows import collection_rows

pytestmark = pytest.mark.spark

SECOND = 1_000_000_000
BLANK: dict[str, Any] = {
    "priority": 5, "hops": 1, "id": "1", "topic": "x", "payload_bytes": 1, "published_ns": 0, "frames": 1,
    "websocket_bytes": 2, "header_bytes": 29, "pieces": 1, "packets": 1, "label_bytes": 0, "flags": 0,
    "overlay_kind": None, "carried_kind": None, "joined": 1,
}  # fmt: skip


def sighting(
    link: str,
    direction: str,
    src: str,
    dst: str,
    at_s: float,
    kind: str = "PUBLISH",
    origin: str = "sensor",
    complete: bool = True,
) -> dict[str, Any]:
    """A message on a link; its last byte is 0.1 s behind its first."""
    first = round(at_s * SECOND)
    return BLANK | {
        "link": link,
        "direction": direction,
        "src": src,
        "dst": dst,
        "kind": kind,
        "origin": origin,
        "complete": complete,
        "first_ns": first,
        "last_ns": first + SECOND // 10,
    }


def crossing(src: str, dst: str, at_s: float, **more: Any) -> list[dict[str, Any]]:
    """The message up on the sender's link, and down on the receiver's."""
    return [
        sighting(src, "up", src, dst, at_s, **more),
        sighting(dst, "down", src, dst, at_s + 0.1, **more),
    ]


HAND_MADE = [
    *crossing("sensor", "a", 10.0),
    *crossing("a", "b", 10.3),
    *crossing("b", "town", 10.5),
    *crossing("sensor", "a", 10.85),  # leaves in one second, is whole in the next
    *crossing("a", "b", 11.5, kind="HEARTBEAT", origin=None),
    sighting("town", "down", "b", "town", 11.0, complete=False),  # its end never arrived
    sighting("router", "up", "sensor", "a", 10.0),  # at a router, not at an end of its path
    *crossing("sensor", "a", 9.0),  # before the measured time
    *crossing("sensor", "a", 13.0),  # after the measured time
]
COUNTED = {  # node, second: received, sent, publications received, forwarded
    ("sensor", 0): (0, 2, 0, 0),
    ("a", 0): (1, 1, 1, 1),
    ("b", 0): (1, 1, 1, 1),
    ("town", 0): (1, 0, 1, 0),
    ("a", 1): (1, 1, 1, 0),
    ("b", 1): (1, 0, 0, 0),
}


def counted(rows: Iterable[Any]) -> dict[tuple[str, int], tuple[int, ...]]:
    return {
        (row.node, row.unit): (row.received, row.sent, row.publications_received, row.forwarded)
        for row in rows
    }


def test_a_run_made_by_hand_is_counted_as_by_hand(spark):
    frame = spark.createDataFrame(HAND_MADE, messages.SCHEMA)
    found = load.load(frame, 10 * SECOND, 12 * SECOND).collect()
    assert counted(found) == COUNTED
    assert {row.load for row in found} == {1.0, 2.0}
    weighed = load.load(frame, 10 * SECOND, 12 * SECOND, alpha=1.0, beta=0.5).collect()
    assert {(row.node, row.unit): row.load for row in weighed}["sensor", 0] == 1.0


def test_publications_that_travel_joined_are_one_message(spark):
    three = [
        row | {"id": str(n), "joined": 3} for n in range(3) for row in crossing("a", "b", 10.0)
    ]
    frame = spark.createDataFrame([*three, *crossing("a", "b", 10.5)], messages.SCHEMA)
    found = load.load(frame, 10 * SECOND, 12 * SECOND).collect()
    assert counted(found) == {("a", 0): (0, 2, 0, 4), ("b", 0): (2, 0, 4, 0)}


def by_pandas(
    rows: list[dict[str, Any]], begin_ns: int, end_ns: int, unit_ns: int
) -> dict[tuple[str, int], tuple[int, ...]]:
    """The same counts by pandas, one node and one direction after the other."""
    frame = pd.DataFrame(rows)
    parts = []
    for end, direction, moment in (("src", "up", "first_ns"), ("dst", "down", "last_ns")):
        own = frame[(frame.direction == direction) & (frame.link == frame[end])]
        if direction == "down":
            own = own[own.complete]
        own = own[(own[moment] >= begin_ns) & (own[moment] <= end_ns)]
        publication = own.kind == "PUBLISH"
        sent = direction == "up"
        parts.append(
            pd.DataFrame(
                {
                    "node": own.link,
                    "unit": ((own[moment] - begin_ns) // unit_ns).clip(
                        upper=max(0, -(-(end_ns - begin_ns) // unit_ns) - 1)
                    ),
                    "received": int(not sent),
                    "sent": int(sent),
                    "publications_received": 0 if sent else publication.astype(int),
                    "forwarded": (publication & (own.origin != own.link)).astype(int) * sent,
                }
            )
        )
    sums = pd.concat(parts).groupby(["node", "unit"]).sum()
    return {
        place: tuple(int(n) for n in row)
        for place, row in zip(sums.index, sums.to_numpy(), strict=True)
    }


NODES = ("sensor", "a", "b", "town")
sightings = st.builds(
    sighting,
    link=st.sampled_from((*NODES, "router")),
    direction=st.sampled_from(("up", "down")),
    src=st.sampled_from(NODES),
    dst=st.sampled_from(NODES),
    at_s=st.integers(0, 60).map(lambda tenths: 9 + tenths / 10),
    kind=st.sampled_from(("PUBLISH", "HEARTBEAT")),
    origin=st.sampled_from(NODES),
    complete=st.booleans(),
)


@given(rows=st.lists(sightings, min_size=1, max_size=60), unit_s=st.sampled_from((0.5, 1.0, 7.0)))
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_spark_counts_as_pandas_does(spark, rows, unit_s):
    frame = spark.createDataFrame(rows, messages.SCHEMA)
    found = load.load(frame, 10 * SECOND, 14 * SECOND, unit_s).collect()
    assert counted(found) == by_pandas(rows, 10 * SECOND, 14 * SECOND, round(unit_s * SECOND))


@pytest.fixture(scope="module")
def measured(spark, tmp_path_factory):
    """The metrics of a known run of five brokers."""
    folder = tmp_path_factory.mktemp("runs") / "brokers"
    known_broker_run().write(folder)
    return folder, measure_run(spark, read_run(folder))


def test_the_summary_is_that_of_the_rows(measured):
    folder, summary = measured
    reported = summary["load"]
    frame = pq.read_table(folder / "metrics" / "load.parquet").to_pandas()
    nodes = ["a", "b", "c", "d", "e", "east", "slope", "west"]
    totals = frame.groupby("node").load.sum().reindex(nodes, fill_value=0.0)
    assert list(reported["by_node"]) == nodes
    assert {name: row["load"] for name, row in reported["by_node"].items()} == totals.to_dict()
    overall = reported["all"]
    assert overall["nodes"] == 8
    assert overall["load"] == totals.sum() == frame.received.sum() + frame.sent.sum()
    assert overall["per_unit"] == pytest.approx(totals.sum() / reported["seconds"])
    assert overall["largest"] == {"node": totals.idxmax(), "load": totals.max()}
    assert overall["momentary"]["load"] == frame.load.max()
    assert overall["fairness"] == pytest.approx(totals.sum() ** 2 / (8 * (totals**2).sum()))
    assert reported["brokers"]["nodes"] == 5
    by_node = frame.groupby("node")[["publications_received", "forwarded"]].sum()
    by_node = by_node.reindex(nodes, fill_value=0)
    wanted = np.corrcoef(by_node.publications_received, by_node.forwarded)[0, 1]
    assert overall["correlation"] == pytest.approx(wanted)


def test_the_rows_are_written_as_their_schema_declares(spark, measured):
    found = spark.read.parquet(str(measured[0] / "metrics" / "load.parquet")).schema
    declared = StructType.fromDDL(load.SCHEMA)
    assert [(f.name, f.dataType) for f in found] == [(f.name, f.dataType) for f in declared]


def test_publications_forwarded_are_the_copies_that_are_counted_elsewhere(measured):
    _, summary = measured
    copies = sum(row["copies"] for row in summary["overlay"]["by_broker"].values())
    assert sum(row["forwarded"] for row in summary["load"]["by_node"].values()) == copies


def test_the_report_shows_the_load(measured):
    text = write_report(measured[0]).read_text()
    assert '<h2 id="load">Load</h2>' in text
    assert "had most to do" in text
    assert "Messages that each node received and sent" in text


def test_nodes_without_any_load_are_spread_as_well() -> None:
    idle = {"received": 0, "sent": 0, "publications_received": 0, "forwarded": 0}
    none = {name: {**idle, "load": 0.0, "momentary": 0.0} for name in "ab"}
    found = of_summary.spread(none, units=10.0)
    assert (found["fairness"], found["correlation"], found["per_unit"]) == (None, None, 0.0)
    one = {**none, "a": {**idle, "load": 5.0, "momentary": 2.0}}
    assert of_summary.spread(one, units=None)["fairness"] == 0.5
    assert of_summary.spread({}, units=None)["largest"] is None


def test_trials_of_kawakami2016_become_means_with_their_fairness(spark, tmp_path: Path):
    rows = list(collection_rows())
    write_tables(tmp_path, {"paper": "kawakami2016"}, {"collection": rows})
    found = measure(spark, tmp_path)
    verdicts = [check["ok"] for check in found.checks]
    assert (set(verdicts[:-5]), verdicts[-5:]) == ({True}, [None] * 5), "there was no waiting"
    assert json.loads(json.dumps(found.figures)) == found.figures
    fairness = next(figure["cells"] for figure in found.figures if figure["figure"] == "fairness")
    chain = [cell["ours"]["fairness"] for cell in fairness if cell["method"] == "chain"]
    assert [one["mean"] for one in chain] == pytest.approx([0.8, 0.8])
    assert {one["trials"] for one in chain} == {2}
