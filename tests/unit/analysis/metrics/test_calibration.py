"""The results of calibration as reasons for doubt and as a table."""

import pytest

from analysis.inputs import calibration
from analysis.inputs.run_folder import read_run
from analysis.metrics.fidelity import Evidence, verdict
from support.runs.star_runs import StarRun

GOOD = Evidence(0.001, (), {}, 0, 0, 0, lost_deliveries=0)
AS_ASKED = {
    "profile": "3g-384k",
    "direction": "up",
    "method": "quick",
    "asked": {"rate_bps": 384000.0, "delay_s": 0.065, "loss": 0.01},
    "achieved": {"rate_bps": 381200.0, "delay_s": 0.0658, "loss": None},
    "ok": True,
    "reasons": [],
}
OFF = {
    **AS_ASKED,
    "direction": "down",
    "ok": False,
    "reasons": ["the rate is 300 kbit/s, 22 % off.", "the delay is 9 ms off"],
}


@pytest.fixture
def run_with(tmp_path):
    def make(**manifest):
        StarRun(sensors=1, subscribers=1).write(tmp_path / "run", **manifest)
        return read_run(tmp_path / "run")

    return make


def test_each_profile_that_is_off_is_one_reason(run_with):
    result = verdict(run_with(calibration=[AS_ASKED, OFF]), GOOD)
    assert result["reasons"] == [
        "Links of profile 3g-384k, down, deviate from the profile: the rate is 300 kbit/s, 22 % off; "
        "the delay is 9 ms off."
    ]


def test_a_profile_that_is_off_without_a_reason_is_one_all_the_same(run_with):
    run = run_with(calibration=[{**OFF, "reasons": []}])
    assert verdict(run, GOOD)["reasons"] == [
        "Links of profile 3g-384k, down, deviate from the profile."
    ]


@pytest.mark.parametrize("manifest", [{}, {"calibration": None}, {"calibration": []}])
def test_a_run_without_calibration_is_not_doubted(run_with, manifest):
    run = run_with(**manifest)
    assert verdict(run, GOOD)["ok"]
    assert calibration.rows(run) == []


def test_the_table_has_the_requested_beside_the_achieved_values(run_with):
    (row,) = calibration.rows(run_with(calibration=[AS_ASKED]))
    reported = {
        name: tuple(text.replace("\u00a0", " ") for text in row[name])
        for name in ("rate", "delay", "loss")
    }
    assert reported == {
        "rate": ("384 kbit/s", "381.2 kbit/s"),
        "delay": ("65 ms", "65.8 ms"),
        "loss": ("1 %", "not measured"),
    }


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (None, "unlimited"),
        (500.0, "500 bit/s"),
        (80_000.0, "80 kbit/s"),
        (7.2e6, "7.2 Mbit/s"),
        (1e10, "10 Gbit/s"),
    ],
)
def test_rates_are_written_as_people_say_them(bits, text):
    assert calibration.rate(bits).replace("\u00a0", " ") == text
