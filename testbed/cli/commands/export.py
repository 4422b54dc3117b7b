"""`testbed packets`, `job` and `dissector`: captures and messages for Parquet, spark-submit and Wireshark."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from testbed.backends.common.node_config import BROKER_PORT
from testbed.cli.masters import chosen_master
from testbed.cli.measurement import stages
from testbed.cli.options import AsJson, Master
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.progress import Incomplete

SHOWN = 20  # problems in the table; --json has them all

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="pcap or pcapng files, also compressed (gz, zst), folders, or glob patterns.",
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FOLDER.parquet",
        help="Write a Parquet dataset with one row per packet to this folder.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed packets captures/*/pcap --to packets.parquet")(packets)
    app.command(epilog="Example: testbed job --to job")(job)
    app.command(
        epilog="Example: testbed dissector --to testbed.lua && tshark -X lua_script:testbed.lua "
        "-r captures/sample/pcap/siren.pcap -Y 'testbed.priority == 5'"
    )(dissector)


def packets(
    paths: Paths, to: Target = None, master: Master = None, as_json: AsJson = False
) -> None:
    """Count the packets of captures and write their header fields as Parquet, with Spark.

    Files and records that cannot be read (truncated, corrupt or not a capture) are listed as problems. The exit code
    is then 3.
    """
    with Terminal(as_json) as terminal:
        document = _read(paths, to, chosen_master(master), terminal)
        if document["problems"] and not document["packets"]:
            first = document["problems"][0]
            terminal.so_far |= document
            raise TestbedError(
                f"no capture could be read: {first['path']}: {first['reason']}",
                "testbed reads pcap and pcapng, also compressed with gzip or zstd",
            )
        terminal.document(document)
        terminal.show(*tables(document))
        if count := len(document["problems"]):
            lost = sum(problem["bytes"] for problem in document["problems"])
            where = len({problem["path"] for problem in document["problems"]})
            terminal.emit(
                Incomplete(f"{lost} bytes in {count} places of {where} files could not be read")
            )


def _read(paths: list[str], to: Path | None, master: str, terminal: Terminal) -> dict[str, Any]:
    from analysis.captures.files import find_files
    from analysis.errors import AnalysisError
    from analysis.packets import read_packets

    try:
        find_files(paths)
    except AnalysisError as error:
        raise InputError(error.message, error.hint) from error
    try:
        return read_packets(paths, to, stages(terminal.emit), master)
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error


def tables(document: dict[str, Any]) -> list[Table | str]:
    """For people."""
    kinds = Table("kind", title=f"{document['packets']} packets in {document['files']} files")
    for name in ("packets", "bytes on the wire"):
        kinds.add_column(name, justify="right")
    for row in document["kinds"]:
        kinds.add_row(row["kind"], f"{row['packets']:,}", f"{row['wire_bytes']:,}")
    shown: list[Table | str] = [kinds]
    problems = document["problems"]
    if problems:
        table = Table("file", title="what could not be read")
        table.add_column("from byte", justify="right")
        table.add_column("bytes", justify="right")
        table.add_column("why")
        for row in problems[:SHOWN]:
            table.add_row(row["path"], f"{row['offset']:,}", f"{row['bytes']:,}", row["reason"])
        if len(problems) > SHOWN:
            table.caption = f"and {len(problems) - SHOWN} more: --json has them all"
        shown.append(table)
    if document["parquet"]:
        shown.append(f"packets: {document['parquet']}")
    return shown


# `testbed job --to FOLDER`: what `spark-submit` needs to do our analysis on a cluster without testbed.


To = Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Folder for the two files.")]


def job(to: To, as_json: AsJson = False) -> None:
    """Write testbed's code and a program for spark-submit, to run `packets` and `analyze` on any Spark cluster."""
    from analysis.spark.shipping import write_job

    with Terminal(as_json) as terminal:
        code, program = write_job(to)
        terminal.document({"code": str(code), "program": str(program)})
        submit = f"spark-submit --master spark://HOST:PORT --py-files {code} {program}"
        terminal.show(f"{submit} packets PATH... --to FOLDER.parquet", f"{submit} analyze RUN")


# `testbed dissector`: how Wireshark learns to read our messages.


DissectorFile = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE.lua",
        help="Write the dissector to this file. Default: standard output.",
    ),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="TCP port on which brokers listen.")]


def dissector(to: DissectorFile = None, port: Port = BROKER_PORT) -> None:
    """Write a dissector for Wireshark and tshark that decodes testbed's messages (fields: testbed.priority, ...)."""
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
