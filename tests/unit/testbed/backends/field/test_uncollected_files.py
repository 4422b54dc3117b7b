"""Boards with data that was not collected are not cleared."""

from pathlib import Path

import pytest

from testbed.backends.field import removal
from testbed.backends.field.boards import Board
from testbed.backends.field.collection import note_board
from testbed.backends.field.deployment import Deployed, Deployment
from testbed.backends.field.removal import clear_boards
from testbed.cli.commands.down import _uncollected
from testbed.jsonfiles import write_json
from testbed.places import LabPlace, RunPlace
from testbed.progress import ignore

BOARDS = tuple(Board(name, name, "192.0.2.1", "192.0.2.1") for name in ("a", "b", "c", "d"))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LabPlace, RunPlace]:
    monkeypatch.setenv("TESTBED_CAPTURES", str(tmp_path / "captures"))
    run = RunPlace(tmp_path / "captures" / "field-20260101-000000-abcd")
    run.folder.mkdir(parents=True)
    write_json(run.manifest, {"format": 2})
    return LabPlace(tmp_path / "field"), run


@pytest.mark.parametrize("discard", [False, True])
def test_only_boards_whose_data_was_collected_or_that_have_none_are_cleared(
    places: tuple[LabPlace, RunPlace], monkeypatch: pytest.MonkeyPatch, discard: bool
) -> None:
    lab, run = places
    deployment = Deployment(Path("inventory.yml"), BOARDS)
    deployment.save(lab)
    for node in ("a", "b"):
        Deployed(lab).note(node, "fingerprint", None)
    Deployed(lab).attempt("c")  # was not set up to the end; d was never tried
    note_board(run, "a", {"host": "a", "collected": "complete"})
    cleared: list[str] = []

    def clean(*arguments: object) -> tuple[list[str], dict[str, str]]:
        hosts = arguments[3]
        assert isinstance(hosts, dict)
        cleared.extend(hosts)
        return [], {}

    monkeypatch.setattr(removal, "clean", clean)
    _, left = clear_boards(lab, run, deployment, ignore, discard=discard)
    assert cleared == (["a", "b", "c"] if discard else ["a", "c"])
    assert len(left) == (0 if discard else 1)
    assert discard or "board b still has what was not collected" in left[0]


def test_boards_of_a_removed_lab_keep_files_that_its_run_does_not_have(
    places: tuple[LabPlace, RunPlace],
) -> None:
    _, run = places
    note_board(run, "a", {"host": "a", "collected": "complete"})
    note_board(run, "b", {"host": "b"})
    assert list(_uncollected("field", ["a", "b"])) == ["b"]
    assert list(_uncollected("another", ["a", "b"])) == ["a", "b"]


def test_a_recreated_node_still_has_its_uncollected_files(
    places: tuple[LabPlace, RunPlace],
) -> None:
    lab, run = places
    deployment = Deployment(Path("inventory.yml"), BOARDS[:1])
    deployment.save(lab)
    Deployed(lab).note("a", "fingerprint", None)
    Deployed(lab).outdate("a")
    Deployed(lab).attempt("a")  # and the second time it fails
    _, left = clear_boards(lab, run, deployment, ignore)
    assert "board a still has what was not collected" in left[0]
