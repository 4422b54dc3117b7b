"""A process that computes cells touches only what is its own."""

from pathlib import Path
from typing import Any

import pytest

from testbed.places import LabPlace
from testbed.sweeps import worker
from testbed.sweeps.folder import digest_of

VALLEY = """\
name: valley
nodes:
  broker: {kind: broker}
  siren: {kind: subscriber, link: lan, topics: [alerts]}
"""


def task(folder: Path, **more: Any) -> dict[str, Any]:
    file = folder / "valley.yaml"
    file.write_text(VALLEY)
    request: dict[str, Any] = {
        "name": "valley-c1",
        "overrides": [],
        "file": str(file),
        "scenario": None,
    }
    return {**request, "backend": "netns", "texts": digest_of([file]), **more}


def test_a_lab_of_somebody_else_is_neither_taken_over_nor_taken_down(
    tmp_path: Path, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: list[str] = []
    for name in ("bring_up", "bring_down"):
        monkeypatch.setattr(worker, name, lambda *_, name=name, **__: touched.append(name))
    LabPlace.of("valley-c1").folder.mkdir(parents=True)
    outcome = worker.answer(task(tmp_path))
    assert outcome["run"] is None
    assert "is up already" in outcome["error"]
    assert touched == []


def test_a_file_that_is_edited_while_a_sweep_runs_fails_the_cell(
    tmp_path: Path, places: Path
) -> None:
    request = task(tmp_path, backend="simulated")
    assert worker.answer(request)["run"]
    (tmp_path / "valley.yaml").write_text(VALLEY + "seed: 9\n")
    outcome = worker.answer(request)
    assert outcome["run"] is None
    assert "was edited while the sweep ran" in outcome["error"]
