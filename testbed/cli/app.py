"""The commands, put together."""

from typing import Annotated

import typer

from testbed import __version__
from testbed.cli import file_commands, lab_commands, machine_commands, run_commands

app = typer.Typer(
    name="testbed",
    help="Find out whether an alert gets through.\n\n"
    "A topology file describes brokers, sensors, subscribers, their 3G/MVNO links and a scenario. "
    "[bold]testbed run FILE[/] does it all: up, play, down, analyze, report.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong input, 3 done with warnings. "
    "Every option is also an environment variable: TESTBED_<COMMAND>_<OPTION>.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "TESTBED", "help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"testbed {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


for commands in (run_commands, lab_commands, file_commands, machine_commands):
    commands.register(app)


def main() -> None:
    """Entry point of the `testbed` command."""
    app()
