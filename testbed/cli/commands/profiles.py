"""The command that lists the link profiles."""

from dataclasses import asdict

import typer
from rich.table import Table

from nodes.plugins import PluginError
from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.links.model import queue_bytes
from testbed.topology.model import Shape
from testbed.topology.profiles import REPAIR, ROWS, BuiltIn
from testbed.topology.units import DURATION, RATE, SHARE, SIZE

COLUMNS = ("profile", "up", "down", "delay, one way", "loss", "queue", "MTU")


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed profiles --json")(profiles)


def profiles(as_json: AsJson = False) -> None:
    """List the link profiles, built in or of other packages, and the sources of their numbers."""
    with Terminal(as_json) as terminal:
        try:
            rows = [*ROWS.values()]
        except PluginError as error:
            raise InputError(str(error), REPAIR) from error
        terminal.document(
            {"profiles": [{**asdict(row.profile), "source": row.source} for row in rows]}
        )
        terminal.show(_table(rows), *(f"{row.profile.name}: {row.source}" for row in rows))


def _table(rows: list[BuiltIn]) -> Table:
    table = Table(*COLUMNS, title="link profiles")
    for row in rows:
        table.add_row(*cells(row))
    return table


def cells(row: BuiltIn) -> tuple[str, ...]:
    """A profile as texts, one a column; a value once if both directions have it."""
    up, down, mtu = row.profile.up, row.profile.down, row.profile.mtu
    return (
        row.profile.name,
        _rate(up),
        _rate(down),
        _once(_delay(up), _delay(down)),
        _once(_loss(up), _loss(down)),
        _once(SIZE.write(queue_bytes(up, mtu)), SIZE.write(queue_bytes(down, mtu))),
        str(mtu),
    )


def _once(up: str, down: str) -> str:
    return up if up == down else f"{up} up, {down} down"


def _rate(shape: Shape) -> str:
    return "not limited" if shape.rate_bps is None else RATE.write(shape.rate_bps)


def _delay(shape: Shape) -> str:
    if not shape.delay_s:
        return "0"
    return f"{DURATION.write(shape.delay_s)} ± {DURATION.write(shape.jitter_s)}"


def _loss(shape: Shape) -> str:
    return SHARE.write(shape.loss) if shape.loss else "0"
