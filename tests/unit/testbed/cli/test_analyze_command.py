"""`testbed analyze`: what it refuses before anything is measured."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.cli.commands.analyze import read_deadline
from testbed.errors import InputError


def test_a_deadline_is_a_level_and_a_time():
    assert read_deadline("5=2s") == (5, 2.0)
    assert read_deadline("1=1500ms") == (1, 1.5)


@pytest.mark.parametrize("text", ["6=2s", "5", "5=", "5=2", "=2s", "urgent=2s", "5=soon"])
def test_any_other_deadline_is_wrong_input(text):
    with pytest.raises(InputError, match="--deadline"):
        read_deadline(text)


def test_a_dataset_cannot_be_where_a_file_is(tmp_path: Path):
    there = tmp_path / "there"
    there.write_text("")
    done = CliRunner().invoke(app, ["analyze", "--to", str(there)])
    assert done.exit_code == 2
    assert "is a file" in done.stderr


def test_an_unreachable_master_is_wrong_input(places, tmp_path: Path):
    (tmp_path / "run.json").write_text("{}")
    done = CliRunner().invoke(app, ["analyze", str(tmp_path), "--master", "mesos://here"])
    assert done.exit_code == 2
    assert "--master mesos://here" in done.stderr
