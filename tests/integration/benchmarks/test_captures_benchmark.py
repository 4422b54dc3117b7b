"""The benchmarks of captures compare the named readers, on a file that tshark reads as we do, and on a whole run."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure as measure_run
from analysis.spark.session import LOCAL
from benchmarks import chain
from benchmarks.captures import LIMITS, measure
from benchmarks.support.captures.run_folder import SUBSCRIBERS, write_run
from benchmarks.support.harness import Report
from testbed.errors import TestbedError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark; apt-get install tshark"),
]


def test_captures_are_read_beside_tshark_scapy_and_the_bare_parser(spark, tmp_path):
    report = Report(LIMITS)
    measure(1500, 1, report, tmp_path, lambda **_: nullcontext(spark))
    assert report.ratios.keys() == LIMITS.keys()
    assert all(ratio > 0 for ratio in report.ratios.values())
    assert report.details["packets"] == 1500


def test_a_whole_run_is_measured_on_a_cluster_too_and_one_twice_as_big(
    spark, tmp_path, monkeypatch
):
    took = iter((2.0, 3.0, 5.0))
    masters = []

    def analyzed(folder: Path, deliveries: int, master: str = LOCAL) -> tuple[float, int]:
        summary = measure_run(spark.sparkContext, read_run(folder))
        assert summary["messages"]["delivered"] == deliveries
        masters.append(master)
        return next(took), 3 * 2**29

    monkeypatch.setattr(chain, "analyzed", analyzed)
    monkeypatch.setattr(chain, "finished", lambda *_: None)
    monkeypatch.setattr(chain, "plain_session", lambda: 0.5)
    monkeypatch.setattr(chain, "own_cluster", lambda *_, **__: nullcontext("spark://here"))
    report = Report(chain.LIMITS)
    chain.measure([1000, 2000], report, tmp_path)
    assert masters == [LOCAL, "spark://here", LOCAL]
    assert report.ratios == {
        "of a plain session": 4.0,
        "memory": 0.5,
        "cluster": 1.5,
        "double": 2.5,
        "double, memory": 0.375,
    }
    assert report.above == ["of a plain session", "cluster", "double"]


def test_the_benchmark_of_a_whole_run_refuses_another_number_of_deliveries(tmp_path):
    published = write_run(tmp_path / "made", 1000)
    seconds, memory = chain.analyzed(tmp_path / "made" / "run", published * SUBSCRIBERS)
    assert seconds > 0
    assert memory > 50 * 2**20
    with pytest.raises(TestbedError, match="instead of 1 deliveries"):
        chain.analyzed(tmp_path / "made" / "run", 1)
