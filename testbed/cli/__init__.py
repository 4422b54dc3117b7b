"""The command line: `testbed up`, `run`, `analyze`, ... The only part that prints."""

import sys

from testbed.cli.commands import COMMANDS


def main() -> None:
    """Entry point of the `testbed` command."""
    called = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if called is not None and called.draws_at_once:
        from analysis.report import drawing
        from testbed.cli.masters import ready_drawer

        drawing.load(ready_drawer())  # before typer is imported: a third of the command's time
    from testbed.cli import app as application

    application.main()


__all__ = ["main"]
