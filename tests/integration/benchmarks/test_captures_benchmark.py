"""The benchmarks of captures compare the named readers, on a file that tshark reads as we do, and on a whole run."""

import shutil
from contextlib import nullcontext

import pytest

from analysis.inputs.run_folder import read_run
from analysis.pipeline import measure as measure_run
from benchmarks import chain
from benchmarks.captures import LIMITS, measure
from benchmarks.support.harness import Report

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


def test_a_whole_run_is_measured_and_one_twice_as_big(spark, tmp_path, monkeypatch):
    took = iter((2.0, 5.0))
    monkeypatch.setattr(
        chain,
        "analyzed",
        lambda folder: (next(took), 2**30, measure_run(spark.sparkContext, read_run(folder))),
    )
    report = Report(chain.LIMITS)
    chain.measure([1000, 2000], report, tmp_path)
    assert report.ratios == {"seconds": 66.667, "memory": 0.25, "double": 2.5}
    assert report.above == ["seconds", "double"]
