"""`testbed dissector`: how Wireshark learns to read our messages."""

from pathlib import Path
from typing import Annotated

import typer

from testbed.backends.node_files import BROKER_PORT
from testbed.cli.terminal import Terminal
from testbed.errors import InputError

Target = Annotated[
    Path | None,
    typer.Option("--to", metavar="FILE.lua", help="Write it here; without it, on the terminal."),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="On which TCP port brokers listen.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Example: testbed dissector --to testbed.lua && tshark -X lua_script:testbed.lua "
        "-r captures/sample/pcap/siren.pcap -Y 'testbed.priority == 5'"
    )(dissector)


def dissector(to: Target = None, port: Port = BROKER_PORT) -> None:
    """Write a dissector for Wireshark and tshark: our messages in captures, field by field (testbed.priority, ...)."""
    from testbed.capture.dissector import dissector as program

    with Terminal():
        if to is None:
            typer.echo(program(port), nl=False)
            return
        try:
            to.write_text(program(port))
        except OSError as error:
            raise InputError(
                f"{to} cannot be written: {error.strerror}", "name another with --to"
            ) from error
