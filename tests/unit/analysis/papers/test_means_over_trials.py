"""The interval of a mean over trials."""

from statistics import fmean, stdev

import numpy as np
import pytest

from analysis.papers.tables import spread


def test_the_interval_is_students() -> None:
    values = [4.0, 5.0, 6.0]
    found = spread(fmean(values), stdev(values), 3)
    assert found == {
        "mean": 5.0,
        "low": pytest.approx(5 - 4.303 / 3**0.5),
        "high": pytest.approx(5 + 4.303 / 3**0.5),
        "trials": 3,
    }


def test_one_trial_has_no_interval() -> None:
    assert spread(4.0, None, 1) == {"mean": 4.0, "low": None, "high": None, "trials": 1}


@pytest.mark.parametrize("trials", [2, 5, 30, 100])
def test_the_true_mean_is_inside_in_95_of_100_cases(trials: int) -> None:
    values = np.random.default_rng(trials).normal(10.0, 3.0, size=(4_000, trials))
    found = [spread(float(row.mean()), float(row.std(ddof=1)), trials) for row in values]
    inside = np.mean([one["low"] <= 10.0 <= one["high"] for one in found])
    assert inside == pytest.approx(0.95, abs=0.015)
