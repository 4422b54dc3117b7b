"""The commands, put together."""

import importlib
import json
import signal
import sys
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from analysis.spark.interrupts import never_lost
from analysis.without_pandas import leave_pandas_out
from testbed import __version__
from testbed.cli.commands import COMMANDS
from testbed.errors import INTERRUPTED
from testbed.limits import raise_open_files


class CommandsByName(TyperGroup):
    """Imports the module of a command when the command is called; until then it has only its name and help."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if (name := args[0]) in COMMANDS:
            self.commands[name] = _load(name)
        return super().resolve_command(ctx, args)


def _load(name: str) -> Any:
    """The command itself, with its arguments and options."""
    module = importlib.import_module(f"testbed.cli.commands.{COMMANDS[name].module}")
    loaded = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False)
    module.register(loaded)
    return typer.main.get_group(loaded).commands[name]


app = typer.Typer(
    name="testbed",
    cls=CommandsByName,
    help="Find out whether an alert gets through.\n\n"
    "A topology file describes brokers, sensors, subscribers, their 3G/MVNO links and a scenario. "
    "[bold]testbed run FILE[/] runs the whole chain: up, play, down, analyze, report.",
    epilog="Exit codes: 0 success, 1 failure, 2 invalid input, 3 partial success (with --strict also: warnings), "
    "130 interrupted. Every option is also an environment variable: TESTBED_<COMMAND>_<OPTION>; "
    "for --json, TESTBED_JSON; for --set, TESTBED_SET; for --strict, TESTBED_STRICT.",
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


def _not_loaded() -> None:
    """Stands for each command until it is called."""


for name, command in COMMANDS.items():
    app.command(name, help=command.help)(_not_loaded)


# All wrong usage is of this kind; typer does not export its name.
CommandLineError: type[Exception] = cast(type[Exception], typer.BadParameter.__mro__[2])


def main() -> None:
    """Entry point of the `testbed` command. SIGTERM counts as an interrupt: labs are taken down."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise_open_files()
    leave_pandas_out()
    try:
        with never_lost():
            code = app(standalone_mode=False)
    except CommandLineError as error:
        code = _wrong_usage(error)
    except KeyboardInterrupt:  # lost until the command had ended
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _wrong_usage(error: Any) -> int:
    """Report wrong usage like any other wrong input: a sentence on stderr, with --json also a document on stdout."""
    error.show()
    if "--json" in sys.argv:
        document = {"message": error.format_message(), "hint": "see --help", "exit_code": 2}
        typer.echo(json.dumps({"error": document}, indent=2))
    return int(error.exit_code)
