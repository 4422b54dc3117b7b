"""`testbed profiles` and the documentation show the built-in profiles as they are."""

import json

import pytest
from typer.testing import CliRunner

from testbed.cli.app import app
from testbed.cli.commands.profiles import COLUMNS, cells
from testbed.links.model import queue_bytes
from testbed.topology.model import Profile, Shape
from testbed.topology.profiles import BUILT_IN, PROFILES


def document() -> str:
    from pathlib import Path

    return (Path(__file__).parents[4] / "docs" / "reference" / "profiles.md").read_text()


def test_the_list_shows_every_profile_with_its_source() -> None:
    shown = CliRunner().invoke(app, ["profiles"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    for name, row in BUILT_IN.items():
        assert f"{name}: {row.source}" in shown.stdout


def test_programs_get_the_numbers_that_topologies_are_made_from() -> None:
    shown = CliRunner().invoke(app, ["profiles", "--json"])
    rows = json.loads(shown.stdout)["profiles"]
    assert [row["source"] for row in rows] == [row.source for row in BUILT_IN.values()]
    again = {
        row["name"]: Profile(row["name"], Shape(**row["up"]), Shape(**row["down"]), row["mtu"])
        for row in rows
    }
    assert again == PROFILES


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_documentation_has_each_profile_with_its_source(name: str) -> None:
    row = BUILT_IN[name]
    assert f"| {' | '.join(COLUMNS)} | source |" in document()
    assert f"| `{name}` | {' | '.join(cells(row)[1:])} | {row.source} |" in document()


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_profile_is_possible(name: str) -> None:
    profile = PROFILES[name]
    for shape in (profile.up, profile.down):
        assert shape.jitter_s <= shape.delay_s
        assert queue_bytes(shape, profile.mtu) >= 10 * 1514  # TCP's first flight fits


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_source_marks_estimates(name: str) -> None:
    assert "Estimate: " in BUILT_IN[name].source
