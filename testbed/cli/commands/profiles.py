"""The command that lists the link profiles."""

from dataclasses import asdict

import typer
from rich.table import Table

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.links.model import queue_bytes
from testbed.topology.model import Shape
from testbed.topology.profiles import ROWS, BuiltIn
from testbed.topology.units import DURATION, RATE, SHARE, SIZE

COLUMNS = ("profile", "up", "down", "delay, one way", "loss", "queue", "MTU")


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed profiles --json")(profiles)


def profiles(as_json: AsJson = False) -> None:
    """List the link profiles, built in or of other packages, and the sources of their numbers."""
    with Terminal(as_json) as terminal:
        terminal.document(
            {"profiles": [{**asdict(row.profile), "source": row.source} for row in ROWS.values()]}
        )
        terminal.show(_table(), *(f"{name}: {row.source}" for name, row in ROWS.items()))


def _table() -> Table:
    table = Table(*COLUMNS, title="link profiles")
    for row in ROWS.values():
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
