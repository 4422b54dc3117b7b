"""`testbed status [LAB]`: labs, the nodes of one, or what belongs to none."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated

import typer
from rich import box
from rich.table import Column, Table

from testbed.cli.options import AsJson, LabName
from testbed.cli.terminal import Fitting, Terminal, what_is_missing
from testbed.errors import InputError
from testbed.lab.status import LabStatus, NodeStatus, how_to_repair, lab_status
from testbed.progress import Note
from testbed.records import find_lab, lab_names

EPILOG = "Example: testbed status demo --json; testbed status --orphans"
_COUNTS = ("to publish", "published", "received", "queued")
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(status)


def status(
    name: LabName = None,
    orphans: Annotated[
        bool,
        typer.Option(
            "--orphans", help="List the remains of crashed labs, and the commands that remove them."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the labs that are up, or the nodes of one lab."""
    with Terminal(as_json) as terminal:
        if name and orphans:
            raise InputError("orphans belong to no lab", "`testbed status --orphans` lists all")
        if orphans:
            _orphans(terminal)
            return
        names = [find_lab(name).name] if name else lab_names()
        labs = [lab_status(each) for each in names]
        terminal.document({"labs": [asdict(lab) for lab in labs]})
        if not labs:
            terminal.show("no lab is up")
        elif name:
            terminal.show(nodes_table(labs[0]), *labs[0].problems)
            if labs[0].state in ("partly", "dead"):
                terminal.show(how_to_repair(find_lab(name)))
        else:
            terminal.show(labs_table(labs))


def labs_table(labs: list[LabStatus]) -> Table:
    """A row a lab."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("lab", "state", "nodes", "ready", "backend", "links", "run"):
        right = column in ("nodes", "ready")
        table.add_column(column, justify="right" if right else "left", no_wrap=column != "state")
    for lab in labs:
        ready = sum(node.ready for node in lab.nodes)
        table.add_row(
            lab.name,
            "\n".join([lab.state, *lab.problems]),
            str(len(lab.nodes)),
            str(ready),
            lab.backend or "",
            lab.emulator or "",
            lab.run or "",
        )
    return table


def nodes_table(lab: LabStatus) -> Fitting:
    """A row a node."""
    where = ", ".join(part for part in (lab.backend, lab.emulator) if part)
    known = ("node", "kind", "address", "link", "state", *_COUNTS)

    def make(left_out: Collection[str]) -> Table:
        columns = [name for name in known if name not in left_out]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.title = f"lab {lab.name}: {lab.state} ({where}), run {lab.run}"
        table.caption = what_is_missing(known, left_out)
        for name in columns:
            table.add_column(name, justify="right" if name in _COUNTS else "left", no_wrap=True)
        for node in lab.nodes:
            cells = _cells(node)
            table.add_row(*(cells[name] for name in columns))
        return table

    return Fitting(make, (("address",), ("address", "kind"), ("address", "kind", "link")))


def _cells(node: NodeStatus) -> dict[str, str]:
    counts = (node.playing, node.published, node.received, node.queued)
    return {
        "node": node.name,
        "kind": node.kind,
        "address": node.address,
        "link": node.link,
        "state": "ready" if node.ready else node.state,
        **dict(zip(_COUNTS, map(str, counts), strict=True)),
    }


def _orphans(terminal: Terminal) -> None:
    from testbed.lab.orphans import find_orphans

    found = find_orphans()
    terminal.document(
        {"orphans": [asdict(orphan) for orphan in found.orphans], "unseen": list(found.unseen)}
    )
    for sentence in found.unseen:
        terminal.emit(Note(sentence))
    if not found.orphans:
        terminal.show("nothing is left of labs that are gone")
        return
    table = Table("what", "name", "lab", "age", Column("how to remove it", overflow="fold"))
    for orphan in found.orphans:
        table.add_row(orphan.what, orphan.name, orphan.lab, age(orphan.age_s), orphan.remedy)
    terminal.show(table)


def age(seconds: float) -> str:
    """The age in its largest useful unit."""
    for unit, length_s in (("d", _DAY_S), ("h", _HOUR_S), ("min", _MINUTE_S)):
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{seconds:.0f} s"
