"""The command line: `testbed up`, `run`, `analyze`, ... The only part that prints."""

from testbed.cli.app import main

__all__ = ["main"]
