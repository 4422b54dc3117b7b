"""Where a command writes its output, and with which exit code it ends."""

import errno
import json
from contextlib import suppress

import pytest
import typer
from rich.text import Text

from testbed.cli.terminal import Terminal
from testbed.errors import InputError, MissingCapability
from testbed.progress import Note, StageAdvanced, StageEnded, StageStarted, Warned


def end_of(error: BaseException | None, as_json: bool = False, warn: bool = False) -> int:
    """The exit code of a command that ends with this error."""
    try:
        with Terminal(as_json) as terminal:
            if warn:
                terminal.emit(Warned("slow"))
            if error:
                raise error
    except typer.Exit as ended:
        return ended.exit_code
    return 0


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (None, 0, ""),
        (InputError("no lab named 'x' is up", "start it"), 2, "no lab named 'x' is up"),
        (MissingCapability("no engine", "make engine"), 1, "make engine"),
        (
            OSError(errno.ENOSPC, "full", "/captures/run.json"),
            1,
            "while writing /captures/run.json",
        ),
        (PermissionError(errno.EACCES, "denied", "/run/testbed"), 1, "permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_each_error_has_its_exit_code_and_its_sentence(error, code, message, capsys):
    assert end_of(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_warning_makes_the_exit_code_three(capsys):
    assert end_of(None, warn=True) == 3
    assert "warning: slow" in capsys.readouterr().err


def test_an_unforeseen_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError), Terminal():
        raise ZeroDivisionError


def test_with_json_an_error_is_one_document_on_stdout(capsys):
    assert end_of(InputError("wrong", "right"), as_json=True) == 2
    document = json.loads(capsys.readouterr().out)
    assert document == {"error": {"message": "wrong", "hint": "right", "exit_code": 2}}


def test_with_json_nothing_but_the_document_goes_to_stdout(capsys):
    with Terminal(as_json=True) as terminal:
        terminal.emit(StageStarted("wiring links", 3))
        terminal.emit(StageAdvanced("wiring links", 3, "sensor [1]"))
        terminal.emit(StageEnded("wiring links"))
        terminal.emit(Note("backend netns"))
        terminal.show("for people")
        terminal.document({"lab": "valley"})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"lab": "valley"}
    assert "wiring links (3)" in err
    assert "backend netns" in err


def test_without_a_terminal_the_progress_of_a_long_stage_is_printed_now_and_then(
    capsys, monkeypatch
):
    monkeypatch.setattr("testbed.cli.terminal.PROGRESS_INTERVAL_S", -1.0)
    with Terminal() as terminal:
        terminal.emit(StageStarted("playing", 20))
        terminal.emit(StageAdvanced("playing", 15))
    assert capsys.readouterr().err.splitlines() == ["playing (20)", "playing: 15 of 20"]


def test_a_long_line_stays_one_line_without_a_terminal(capsys):
    text = "word " * 60
    with suppress(typer.Exit), Terminal() as terminal:
        terminal.show(Text(text))
        terminal.emit(Note(text))
        terminal.emit(Warned(text))
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert len(err.splitlines()) == 2
