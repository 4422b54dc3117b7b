"""Load of nodes in a known run, its report, and from cells to Kawakami 2016's fairness."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.inputs.run_folder import read_run
from analysis.papers.kawakami2016.paper import measure
from analysis.papers.tables import write_tables
from analysis.pipeline import measure as measure_run
from analysis.report.report import write_report
from support.runs.known_broker_run import known_broker_run
from support.runs.overlay_rows import collection_rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def measured(spark, tmp_path_factory):
    """The metrics of a known run of five brokers."""
    folder = tmp_path_factory.mktemp("runs") / "brokers"
    known_broker_run().write(folder)
    return folder, measure_run(spark.sparkContext, read_run(folder))


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


def test_publications_forwarded_are_the_copies_that_are_counted_elsewhere(measured):
    _, summary = measured
    copies = sum(row["copies"] for row in summary["overlay"]["by_broker"].values())
    assert sum(row["forwarded"] for row in summary["load"]["by_node"].values()) == copies


def test_the_report_shows_the_load(measured):
    text = write_report(measured[0]).read_text()
    assert '<h2 id="load">Load</h2>' in text
    assert "had the largest load" in text
    assert "Messages that each node received and sent" in text


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
