"""Labs of a paper run in parallel: all end when one fails, and the first one emits the notes of all."""

from collections.abc import Callable
from pathlib import Path
from threading import Barrier

import pytest

from testbed.cli.papers.labs import PaperLab, refuse_those_that_are_up, run_side_by_side
from testbed.errors import NameTaken, TestbedError
from testbed.places import LabPlace
from testbed.progress import Emit, Event, Incomplete, Note, Warned

LABS = [PaperLab(name, "", {}) for name in ("one", "two", "three")]
Interrupted = Callable[[], bool]
PATIENCE_S = 60


def test_labs_run_in_parallel_and_only_the_first_emits_notes(tmp_path: Path) -> None:
    together = Barrier(len(LABS))

    def run(lab: PaperLab, folder: Path, backend: str, emit: Emit, _: Interrupted) -> Path:
        together.wait(PATIENCE_S)
        emit(Note(f"{lab.name} on {backend}"))
        emit(Warned(lab.name))
        emit(Incomplete(f"{lab.name}: a node died"))
        return folder / lab.name

    emitted: list[Event] = []
    found = run_side_by_side(LABS, tmp_path, "netns", emitted.append, run)
    assert found == [tmp_path / lab.name for lab in LABS]
    assert [event for event in emitted if isinstance(event, Note)] == [Note("one on netns")]
    for lab in LABS:
        assert Warned(lab.name) in emitted
        assert Incomplete(f"{lab.name}: a node died") in emitted


def test_if_one_lab_fails_the_others_are_stopped_and_its_error_is_reported(tmp_path: Path) -> None:
    stopped: list[str] = []

    def run(lab: PaperLab, _: Path, __: str, ___: Emit, interrupted: Interrupted) -> Path:
        if lab.name == "two":
            raise TestbedError("no room", "make some")
        while not interrupted():
            pass
        stopped.append(lab.name)
        raise KeyboardInterrupt

    with pytest.raises(TestbedError, match="no room"):
        run_side_by_side(LABS, tmp_path, "netns", lambda _: None, run)
    assert sorted(stopped) == ["one", "three"]


def test_a_lab_of_somebody_else_is_left_alone(places: Path) -> None:
    refuse_those_that_are_up(["one", "two"])
    LabPlace.of("two").folder.mkdir(parents=True)
    with pytest.raises(NameTaken, match="'two' is up already"):
        refuse_those_that_are_up(["one", "two"])
