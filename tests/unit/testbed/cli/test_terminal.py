"""Where a command writes its output, and with which exit code it ends."""

import errno
import json
from collections.abc import Sequence
from contextlib import suppress

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from testbed.cli.terminal import Terminal
from testbed.errors import InputError, MissingCapability
from testbed.progress import (
    Event,
    Incomplete,
    Note,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
)


def end_of(
    error: BaseException | None,
    as_json: bool = False,
    events: Sequence[Event] = (),
    strict: bool | None = None,
) -> int:
    """The exit code of a command that emits these events, and ends with this error."""
    try:
        with Terminal(as_json, strict) as terminal:
            for event in events:
                terminal.emit(event)
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


SLOW, LEFT = Warned("slow"), Incomplete("board 7 was not cleared")


@pytest.mark.parametrize(
    ("events", "strict", "code"),
    [
        ([], True, 0),
        ([SLOW], None, 0),
        ([SLOW], False, 0),
        ([SLOW], True, 3),
        ([LEFT], None, 3),
        ([LEFT], False, 3),
        ([LEFT, SLOW], False, 3),
    ],
)
def test_warnings_change_the_exit_code_only_if_asked_for_and_missing_parts_always(
    events, strict, code
):
    assert end_of(None, events=events, strict=strict) == code


def test_warnings_and_missing_parts_are_told_apart_on_stderr(capsys):
    end_of(None, events=[SLOW, LEFT])
    assert capsys.readouterr().err.splitlines() == [
        "warning: slow",
        "incomplete: board 7 was not cleared",
    ]


@given(st.lists(st.sampled_from([SLOW, LEFT, Note("netns")])), st.booleans())
def test_an_error_or_an_exit_code_of_its_own_goes_before_warnings(events, strict):
    assert end_of(typer.Exit(1), events=events, strict=strict) == 1
    assert end_of(InputError("wrong", "right"), events=events, strict=strict) == 2


def test_with_json_the_document_lists_warnings_and_missing_parts_also_later_ones(capsys):
    with suppress(typer.Exit), Terminal(as_json=True, strict=False) as terminal:
        terminal.emit(SLOW)
        terminal.document({"lab": "valley"})
        terminal.emit(LEFT)
        terminal.emit(Warned("late"))
    assert json.loads(capsys.readouterr().out) == {
        "lab": "valley",
        "warnings": ["slow", "late"],
        "incomplete": ["board 7 was not cleared"],
    }


def test_with_json_the_lists_are_empty_where_there_was_nothing_to_say(capsys):
    with Terminal(as_json=True, strict=True) as terminal:
        terminal.document({"lab": "valley"})
    expected = {"lab": "valley", "warnings": [], "incomplete": []}
    assert json.loads(capsys.readouterr().out) == expected


def test_with_json_a_documents_own_list_of_warnings_stays(capsys):
    with Terminal(as_json=True, strict=False) as terminal:
        terminal.emit(SLOW)
        terminal.document({"warnings": [{"file": "valley.yaml"}]})
    expected = {"warnings": [{"file": "valley.yaml"}], "incomplete": []}
    assert json.loads(capsys.readouterr().out) == expected


def test_with_json_a_failing_command_prints_one_document_with_what_was_known(capsys):
    with suppress(typer.Exit), Terminal(as_json=True, strict=False) as terminal:
        terminal.document({"lab": "valley"})
        terminal.emit(SLOW)
        raise InputError("wrong", "right")
    assert json.loads(capsys.readouterr().out) == {
        "lab": "valley",
        "error": {"message": "wrong", "hint": "right", "exit_code": 2},
        "warnings": ["slow"],
        "incomplete": [],
    }


def test_with_json_a_document_is_printed_also_with_an_exit_code_of_its_own(capsys):
    with suppress(typer.Exit), Terminal(as_json=True) as terminal:
        terminal.document(["no", "dictionary"])
        raise typer.Exit(1)
    assert json.loads(capsys.readouterr().out) == ["no", "dictionary"]


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
