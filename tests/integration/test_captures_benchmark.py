"""The benchmark of captures compares what it says, on a file that tshark reads as we do."""

import shutil
from contextlib import nullcontext

import pytest

from benchmarks.captures import LIMITS, measure
from benchmarks.support.report import Report

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
