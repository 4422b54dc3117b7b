"""`testbed schema`: the JSON Schema of topology files and of scenario files."""

from typing import Annotated

import typer

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.topology import json_schema, scenario_schema


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed schema > topology.schema.json")(schema)


def schema(
    scenario: Annotated[
        bool, typer.Option("--scenario", help="Of files that hold only a scenario.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of topology files (for editors)."""
    with Terminal(as_json=True) as terminal:
        terminal.document(scenario_schema() if scenario else json_schema())
