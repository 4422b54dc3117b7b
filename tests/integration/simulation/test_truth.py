"""On every kind of sample file the metrics equal what the nodes log, message by message. Here in virtual time.

Tests on real links make the same comparison for their runs (`must_agree`); docs/analysis.md says which files were
compared by hand.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.lab.simulate import simulate
from testbed.progress import ignore
from testbed.topology import load
from told_by_nodes import must_agree

pytestmark = pytest.mark.spark

FILES = (
    "minimal",
    "demo",
    "valley-alerts",
    "moving-areas",
    "kochi-areas",
    "valleys-300",
    "papers/kawakami2016-live",
    "papers/kita2025-a-live",
    "papers/lee2016",
)


@pytest.mark.parametrize("name", FILES)
def test_a_trace_and_the_logs_beside_it_say_the_same(
    name: str, repository: Path, places: Path, analyzed: Callable[[Path], Any]
) -> None:
    file = repository / "topologies" / f"{name}.yaml"
    folder = simulate(load(file), file, ignore).folder
    summary = analyzed(folder)
    must_agree(folder, some_lost=summary["messages"]["lost"] > 0)
    assert summary["messages"]["delivered"] > 0
