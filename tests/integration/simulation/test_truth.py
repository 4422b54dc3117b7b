"""The metrics of every sample topology agree with the logs of its nodes, message by message, in virtual time.

Tests on real links make the same comparison for their runs (`must_agree`); docs/explanation/analysis.md lists the
files that were compared by hand.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.runs.log_agreement import must_agree
from testbed.lab.simulate import simulate
from testbed.progress import ignore
from testbed.topology import load

pytestmark = pytest.mark.spark

FILES = (
    "minimal",
    "demo",
    "valley-alerts",
    "moving-areas",
    "kochi-areas",
    "valleys-300",
    "lte-m-cameras",
    "papers/kawakami2016-live",
    "papers/kita2025-a-live",
    "papers/lee2016",
)


@pytest.mark.parametrize("name", FILES)
def test_the_metrics_of_a_trace_agree_with_the_logs(
    name: str, repository: Path, places: Path, analyzed: Callable[[Path], Any]
) -> None:
    file = repository / "topologies" / f"{name}.yaml"
    folder = simulate(load(file), file, ignore).folder
    summary = analyzed(folder)
    must_agree(folder, some_lost=summary["messages"]["lost"] > 0)
    assert summary["messages"]["delivered"] > 0
