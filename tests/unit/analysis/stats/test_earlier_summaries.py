"""Summaries of earlier versions have percentiles of the deliveries that were made: these are computed again."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.inputs.run_folder import Run
from analysis.stats.trials import levels_of, summary_of_run

SECOND = 1_000_000_000
QUANTILES = dict.fromkeys(("p50", "p95", "p99", "max"), 1.0)
COUNTS = {"expected": 10, "delivered": 4, "lost": 6}


def run_of(folder: Path, delay: dict[str, Any], observed_s: float | None = None) -> Run:
    """Ten deliveries, of which four came after a second, and a play that ended after 31 s."""
    (folder / "metrics").mkdir()
    columns = {
        "receiver": pa.array(["siren"] * 10, pa.string()),
        "priority": pa.array([5] * 10, pa.int32()),
        "published_ns": pa.array([0] * 10, pa.int64()),
        "delay_s": pa.array([1.0] * 4 + [None] * 6, pa.float64()),
    }
    if observed_s is not None:
        columns["observed_s"] = pa.array([observed_s] * 10, pa.float64())
    pq.write_table(pa.table(columns), folder / "metrics" / "deliveries.parquet")
    summary = {
        "delay_s": {"5": delay},
        "by_priority": {"5": COUNTS},
        "by_receiver": {"siren": {"5": {**COUNTS, **QUANTILES}}},
        "hops": {},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    delivery = {"method": "fifo", "parameters": []}
    manifest = {
        "run": "old",
        "play": {"start_ns": 0, "end_ns": 31 * SECOND},
        "topology": {"delivery": delivery, "nodes": [{"name": "siren"}]},
    }
    return Run(folder, manifest, ())


def test_a_summary_of_an_earlier_version_is_computed_again(tmp_path: Path) -> None:
    found = summary_of_run(run_of(tmp_path, {"n": 4, **QUANTILES}))
    bounds = dict.fromkeys(QUANTILES, pytest.approx(31.0))
    unknown = dict.fromkeys(QUANTILES)
    assert found["delay_s"]["5"] == {"n": 4, "expected": 10, **unknown, "not_within_s": bounds}
    assert found["hops"] == {}
    receiver = found["by_receiver"]["siren"]["5"]
    assert (receiver["p50"], receiver["not_within_s"]["p50"]) == (None, pytest.approx(31.0))
    assert found["by_method"]["fifo"]["5"] == receiver


def test_a_summary_of_this_version_is_left_as_it_is(tmp_path: Path) -> None:
    delay = {"n": 4, "expected": 10, **QUANTILES, "not_within_s": {}}
    run = run_of(tmp_path, delay)
    assert summary_of_run(run) == json.loads(run.summary.read_text())


def test_levels_of_trials_have_the_bounds_of_what_was_not_reached(tmp_path: Path) -> None:
    level = levels_of([run_of(tmp_path, {}, observed_s=20.0)])["5"]
    assert level["expected"] == 10
    assert level["p50"]["value"] is None
    assert level["p50"]["not_within_s"] == 20.0, "the table says it, not the manifest"
    assert level["lost_share"]["value"] == pytest.approx(0.6)
    assert (level["mean"]["value"], level["mean"]["not_within_s"]) == (None, None)
