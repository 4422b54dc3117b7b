"""Commands on the nodes of a lab that is up: node crash, stop, start."""

from collections.abc import Sequence
from typing import Annotated

import typer

from testbed.cli.commands.link import lab_and_selectors
from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import few
from testbed.lab.nodes import order_nodes
from testbed.progress import Note
from testbed.topology.model import ActionKind

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE",
        help="Nodes: a name, 'group[*]', 'group[0..3]'. Before them the lab's name; not needed if only one is up.",
        show_default=False,
    ),
]
_DONE = {
    ActionKind.CRASH: "crashed",
    ActionKind.STOP: "stopped",
    ActionKind.START: "started",
}


def register(app: typer.Typer) -> None:
    node = typer.Typer(
        help="Crash, stop and start nodes of a lab, on this machine or on boards; the run's manifest records it.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    node.command(epilog="Example: testbed node crash demo broker")(crash)
    node.command(epilog="Example: testbed node stop 'sensors[0..1]'")(stop)
    node.command(epilog="Example: testbed node start demo broker")(start)
    app.add_typer(node, name="node")


def crash(arguments: Words, as_json: AsJson = False) -> None:
    """Kill a node at once (SIGKILL)."""
    _order(arguments, ActionKind.CRASH, as_json)


def stop(arguments: Words, as_json: AsJson = False) -> None:
    """Ask a node to leave in order (SIGTERM)."""
    _order(arguments, ActionKind.STOP, as_json)


def start(arguments: Words, as_json: AsJson = False) -> None:
    """Start a node that has crashed or was stopped."""
    _order(arguments, ActionKind.START, as_json)


def _order(arguments: Sequence[str], kind: ActionKind, as_json: bool) -> None:
    with Terminal(as_json) as terminal:
        record, selectors = lab_and_selectors(arguments)
        names = order_nodes(record, selectors, kind, terminal.emit)
        terminal.document({"lab": record.name, "action": kind.value, "nodes": names})
        if names:
            terminal.show(f"{_DONE[kind]} {few(names)}")
        else:
            terminal.emit(Note(f"all of these are {_DONE[kind]} already"))
