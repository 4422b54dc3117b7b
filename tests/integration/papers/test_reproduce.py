"""A small reproduction of Lee 2016, from namespaces to figures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.inputs.run_folder import Run
from analysis.papers.lee2016.cells import delays, delays_by_cell, read_sheet
from testbed.cli.papers.base import failed_checks, warnings_of_runs
from testbed.cli.papers.lee2016 import run_labs, tables
from testbed.cli.terminal import Terminal
from testbed.papers.lee2016 import Extent, Lab, model, sheet
from testbed.papers.lee2016.cells import Experiment, cells
from testbed.records import lab_names
from testbed.topology.model import Emulator

WAYS = (model.DEFAULT, model.DMPQ_1443, model.PREEMPTIVE)
TINY = Lab(
    "tiny",
    Emulator.TBF,
    20,
    200,
    cells(Experiment.DELAY, WAYS, (7, 15)) + cells(Experiment.TRAFFIC, WAYS, (15,)),
)
SECOND_NS = 1_000_000_000


@pytest.mark.netns
@pytest.mark.spark
def test_cells_side_by_side_become_figures(places: Path, testbed_json: Callable[..., Any]) -> None:
    terminal, folder = Terminal(as_json=True), places / "result"
    run_labs(Extent((TINY,)), folder, "netns", terminal)
    assert lab_names() == []
    document = testbed_json("reproduce", "lee2016", "--from", folder, codes=(0, 3))
    result = json.loads((folder / "result.json").read_text())
    assert document.pop("incomplete") == [*failed_checks(result)]
    assert len(document.pop("warnings")) == len([*warnings_of_runs(result)])
    assert document == {**result, "report": str(folder / "report.html")}
    assert "<svg" in (folder / "report.html").read_text()
    assert len(tables(result)) == 2

    found = {figure["figure"]: figure["cells"] for figure in result["figures"]}
    largest = {cell["series"]: cell["ours"] for cell in found["table 7.1"]}
    assert 0.3 < largest["default"]["growth"] < 0.8  # 0.51 by the model
    assert largest["dmpq-1443"]["arrived"] == largest["dmpq-1443"]["messages"] > 10
    assert largest["default"]["largest_s"] > 10 * largest["dmpq-1443"]["largest_s"]
    packets = {cell["series"]: cell["ours"]["packets"] for cell in found["table 5.6"]}
    assert packets["dmpq-1443"] == 70
    answers = {cell["series"]: cell["ours"]["answers"] for cell in found["5.12"]}
    assert answers == {"default": 0, "dmpq-1443": 710, "preemptive": 0}


@pytest.mark.spark
def test_urgent_messages_in_front_count_for_the_bound_and_late_ones_are_censored(
    spark: Any, tmp_path: Path
) -> None:
    paper = sheet(TINY)
    run = Run(tmp_path, {"run": "made-up", "play": {"start_ns": 0}, "paper": paper}, ())
    node = "delay-dmpq-1443-7"
    # published, received: the second comes while the first is being sent, the last never arrives
    times = [(0.0, 0.05), (0.04, 0.06), (1.0, 1.01), (2.0, None)]
    spark.createDataFrame(
        [
            (
                "delay/dmpq-1443/pm",
                node,
                f"{number:016x}",
                int(sent * SECOND_NS),
                None if came is None else int(came * SECOND_NS),
                None if came is None else came - sent,
            )
            for number, (sent, came) in enumerate(times)
        ],
        "topic string, receiver string, id string, published_ns long, received_ns long, delay_s double",
    ).write.parquet(str(run.metrics / "deliveries.parquet"))
    plan = read_sheet(run)
    each = delays(spark, run, plan)
    rows = sorted((row.asDict() for row in each.collect()), key=lambda row: row["at_s"])
    cell = delays_by_cell(each, plan.standard_period_s).first().asDict()
    bound = paper["cells"][node]["bound"]
    assert [row["waiting"] for row in rows] == [0, 1, 0, 0]
    assert rows[1]["bound_s"] == pytest.approx(bound["before_s"] + 2 * bound["each_s"])
    assert rows[1]["delay_s"] == pytest.approx(0.02 * TINY.scale)
    assert rows[3]["delay_s"] is None
    assert (cell["messages"], cell["arrived"]) == (4, 3)
    assert cell["largest_s"] == pytest.approx(0.05 * TINY.scale)


def test_a_folder_without_runs_is_refused(testbed, tmp_path: Path) -> None:
    done = testbed("reproduce", "lee2016", "--from", tmp_path, "--json")
    assert done.returncode == 2
    assert "runs.json" in json.loads(done.stdout)["error"]["message"]
