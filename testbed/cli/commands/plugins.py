"""`testbed plugins`: what other packages add to testbed."""

from typing import Any, NamedTuple

import typer
from rich.table import Table

from nodes.delivery import METHODS as DELIVERY_METHODS
from nodes.overlay import METHODS as OVERLAY_METHODS
from nodes.plugins import DELIVERIES, OVERLAYS, Plugin, Registry, declared
from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.topology.profiles import GROUP as PROFILES_GROUP
from testbed.topology.profiles import ROWS

READY = "ready"
COLUMNS = ("kind", "name", "package", "object", "state")


class Kind(NamedTuple):
    """A kind of part that a package can bring: its name for people, its group of entry points, all of its kind."""

    name: str
    group: str
    known: Registry[Any]

    def state(self, plugin: Plugin) -> str:
        """Whether a topology file can name it, or why not."""
        if plugin.name in self.known.own:
            return f"not used: testbed has its own {self.name} of this name"
        try:
            plugin.load()
            self.known[plugin.name]  # another package may bring the same name
        except ValueError as error:
            return f"cannot be used: {error}"
        return READY


KINDS = (
    Kind("delivery method", DELIVERIES, DELIVERY_METHODS),
    Kind("overlay method", OVERLAYS, OVERLAY_METHODS),
    Kind("link profile", PROFILES_GROUP, ROWS),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed plugins --json")(plugins)


def plugins(as_json: AsJson = False) -> None:
    """List delivery methods, overlay methods and link profiles that other installed packages bring."""
    with Terminal(as_json) as terminal:
        rows = [
            {
                "kind": kind.name,
                "group": kind.group,
                "name": plugin.name,
                "package": plugin.package,
                "version": plugin.version,
                "object": plugin.value,
                "state": kind.state(plugin),
            }
            for kind in KINDS
            for plugin in declared(kind.group)
        ]
        terminal.document({"groups": [kind.group for kind in KINDS], "plugins": rows})
        if rows:
            terminal.show(_table(rows))
        else:
            groups = ", ".join(kind.group for kind in KINDS)
            terminal.show(f"no installed package has entry points of {groups}")


def _table(rows: list[dict[str, str]]) -> Table:
    table = Table(*COLUMNS, title="parts of other packages")
    for row in rows:
        style = "" if row["state"] == READY else "bold red"
        package = f"{row['package']} {row['version']}"
        table.add_row(row["kind"], row["name"], package, row["object"], row["state"], style=style)
    return table
