"""How good the machine must be depends on the delays of what came, also if the rest was lost."""

import pyarrow as pa
import pytest

from analysis.summary import least_p99_s


def deliveries(*rows: tuple[int, float | None]) -> pa.Table:
    return pa.table(
        {
            "priority": pa.array([level for level, _ in rows], pa.int32()),
            "delay_s": pa.array([delay for _, delay in rows], pa.float64()),
        }
    )


def test_it_is_that_of_the_fastest_level_and_lost_deliveries_do_not_change_it():
    came = [(5, 0.1), (5, 0.2), (1, 3.0)]
    assert least_p99_s(deliveries(*came)) == pytest.approx(0.199)
    assert least_p99_s(deliveries(*came, (5, None), (5, None))) == pytest.approx(0.199)


def test_without_deliveries_there_is_none():
    assert least_p99_s(deliveries()) is None
    assert least_p99_s(deliveries((5, None))) is None
