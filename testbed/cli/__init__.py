"""The command line: `testbed up`, `run`, `analyze`, ... The only part that prints."""

import sys

from testbed.cli.commands import COMMANDS


def main() -> None:
    """Entry point of the `testbed` command."""
    called = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if called is not None and called.draws_at_once:
        from analysis.report import drawing

        drawing.load()  # before typer is imported, which takes as long as a third of the command
    from testbed.cli import app as application

    application.main()


__all__ = ["main"]
