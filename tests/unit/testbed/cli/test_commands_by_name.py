"""A command's module is imported when the command is called; until then `testbed --help` has its help."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from testbed.cli import commands
from testbed.cli.app import _load, app
from testbed.cli.commands import COMMANDS

HEAVY = ("altair", "ansible_runner", "docker", "jinja2", "numpy", "pandas", "pyarrow", "pyspark")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_listed_help_is_the_beginning_of_the_command_s_own(name: str) -> None:
    assert COMMANDS[name].help == _load(name).help.split("\n\n")[0]


def test_every_module_is_listed_with_all_its_commands() -> None:
    files = Path(commands.__path__[0]).glob("*.py")
    assert {listed.module for listed in COMMANDS.values()} | {"__init__"} == {
        file.stem for file in files
    }
    for module in {listed.module for listed in COMMANDS.values()}:
        part = typer.Typer()
        __import__(f"testbed.cli.commands.{module}", fromlist=["register"]).register(part)
        registered = set(typer.main.get_group(part).commands)
        assert registered == {name for name in COMMANDS if COMMANDS[name].module == module}


def test_a_misspelt_command_gets_a_suggestion() -> None:
    shown = CliRunner().invoke(app, ["statsu"])
    assert shown.exit_code == 2
    assert "Did you mean 'status'" in shown.output


def imported_by(*arguments: str) -> set[str]:
    """The modules that a process has imported at the end of a command."""
    script = (
        "import atexit, sys; from testbed.cli import main\n"
        "atexit.register(lambda: print('modules:', *sys.modules))\n"
        "main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    return set(ended.stdout.rpartition("modules:")[2].split())


def test_help_imports_no_command() -> None:
    modules = imported_by("--help")
    assert not [name for name in modules if name.startswith("testbed.cli.commands.")]
    assert not modules & {*HEAVY, "pydantic", "scapy", "yaml"}


@pytest.mark.parametrize(
    ("arguments", "not_needed"),
    [
        (("status",), {"scapy", "yaml"}),
        (("validate", "topologies/demo.yaml"), {"scapy"}),
    ],
    ids=["status", "validate"],
)
def test_a_command_imports_only_its_own_module(
    arguments: tuple[str, ...], not_needed: set[str]
) -> None:
    modules = imported_by(*arguments)
    own = f"testbed.cli.commands.{arguments[0]}"
    assert [name for name in modules if name.startswith("testbed.cli.commands.")] == [own]
    assert not modules & {*HEAVY, *not_needed}
