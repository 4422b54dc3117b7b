"""The known papers, and the options that each of them takes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.cli.commands.reproduce import find_paper
from testbed.cli.papers import PAPERS, Asked, Reproduction, refuse_strange_options
from testbed.cli.terminal import Terminal
from testbed.errors import InputError


def nothing(*_: Any) -> Any:
    raise AssertionError("unexpected call")


def known(*options: str) -> Reproduction:
    return Reproduction("made-up", "", options, nothing, nothing, nothing, nothing)


def test_a_paper_is_found_by_its_name() -> None:
    assert find_paper("lee2016") is PAPERS["lee2016"]
    with pytest.raises(InputError) as caught:
        find_paper("lee2061")
    assert caught.value.hint == "did you mean 'lee2016'?"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(master="spark://one:7077"), "--master selects where cells are computed"),
        (Asked(trials=3), "--trials sets the number of trials of each cell"),
    ],
)
def test_an_option_of_another_paper_is_refused(asked: Asked, message: str) -> None:
    with pytest.raises(InputError) as caught:
        refuse_strange_options(known("backend"), asked, again=False)
    assert caught.value.message.startswith(message)
    assert "made-up does not have this option" in caught.value.message
    assert caught.value.hint == "options of made-up: --quick, --backend"


def test_own_options_are_taken_but_not_where_nothing_is_run() -> None:
    asked = Asked(quick=True, backend="docker")
    refuse_strange_options(known("backend"), asked, again=False)
    with pytest.raises(InputError, match="--from runs no experiment"):
        refuse_strange_options(known("backend"), asked, again=True)


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.name)
def test_a_folder_that_is_none_of_the_papers_is_refused(
    paper: Reproduction, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is not the folder of a reproduction"):
        paper.again(tmp_path, Terminal(as_json=True))


def test_a_check_that_does_not_hold_leaves_the_reproduction_incomplete(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [
        {"check": "the earth is flat", "ok": False, "found": "round"},
        {"check": "water is wet", "ok": True, "found": "wet"},
        {"check": "it rains", "ok": None, "found": "not measured"},
    ]
    paper = Reproduction(
        "made-up",
        "",
        (),
        anew=lambda *_: {"checks": checks},
        again=nothing,
        tables=lambda _: [],
        warnings=lambda _: ["busy"],
    )
    monkeypatch.setitem(PAPERS, "made-up", paper)
    done = CliRunner().invoke(app, ["reproduce", "made-up", "--json"])
    assert done.exit_code == 3
    document = json.loads(done.stdout)
    assert document["warnings"] == ["busy"]
    assert document["incomplete"] == ["not reproduced: the earth is flat; round"]


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.name)
def test_doubts_about_the_runs_of_a_paper_are_warnings(paper: Reproduction) -> None:
    runs = [{"run": "r1", "fidelity": {"reasons": ["busy"]}}]
    with_runs = paper.name in ("lee2016", "kawakami2016")
    found = list(paper.warnings({"runs": runs, "checks": []}))
    assert found == (["r1: busy"] if with_runs else [])
