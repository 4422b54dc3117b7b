"""`testbed why [MESSAGE|RUN]`: why a message was late or lost, or the slowest ones of a run."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from testbed.cli.measurement import analyze_run
from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError, few
from testbed.jsonfiles import read_json
from testbed.places import RunPlace
from testbed.progress import Note
from testbed.records import did_you_mean, find_run

if TYPE_CHECKING:
    import pyarrow as pa

    from analysis.inputs.run_folder import Run
    from analysis.stats.why import Why

MESSAGE = re.compile(
    r"[0-9a-f]{16}", re.IGNORECASE
)  # an id, as tables, logs and the report show it

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="MESSAGE|RUN",
        help="The id of a message of the newest run, 16 hexadecimal digits; or a run's id, folder or lab.",
    ),
]
Identity = Annotated[
    str | None,
    typer.Option("--message", metavar="ID", help="Explain this message of the run."),
]
Receiver = Annotated[
    str | None, typer.Option("--receiver", metavar="NODE", help="Only deliveries to this node.")
]
Level = Annotated[
    int | None, typer.Option("--level", min=1, max=5, help="Only messages of this level.")
]
Slowest = Annotated[
    int,
    typer.Option(
        "--slowest", min=1, max=1000, help="Without a message: the number of deliveries to list."
    ),
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples: testbed why demo  ·  testbed why demo --level 5 --slowest 3  ·  "
        "testbed why 0000000300000002 --receiver siren  ·  "
        "testbed why captures/sample --message 0000000200000004"
    )(why)


def why(
    name: Name = None,
    message: Identity = None,
    receiver: Receiver = None,
    level: Level = None,
    slowest: Slowest = 10,
    as_json: AsJson = False,
) -> None:
    """Explain why a message was late or lost: its hops, what each link carried before, faults and link changes near it.

    Without a message, the command lists the slowest deliveries of the run and their causes, the highest level first.
    It analyzes the run first if it has not been analyzed.
    """
    with Terminal(as_json) as terminal:
        if name is not None and message is None and _is_message(name):
            name, message = None, name
        if message is not None and not MESSAGE.fullmatch(message):
            raise InputError(
                f"{message!r} is not a message id",
                "a message id has 16 hexadecimal digits; `testbed why RUN` shows ids",
            )
        place = find_run(name)
        run, deliveries = _measured(place, terminal)
        if message is not None:
            _show_message(run, deliveries, message.lower(), receiver, level, terminal)
        else:
            documents = _show_slowest(run, deliveries, slowest, receiver, level, terminal)
            _show_next(name or place.run, deliveries, documents, receiver, level, terminal)


def _is_message(name: str) -> bool:
    """Whether the argument is a message: it looks like one, and no run has this name."""
    return MESSAGE.fullmatch(name) is not None and not (Path(name) / "run.json").is_file()


def _measured(place: RunPlace, terminal: Terminal) -> "tuple[Run, pa.Table]":
    """The run and its deliveries; it is analysed first if that was not done."""
    from analysis.errors import AnalysisError
    from analysis.inputs.results import table
    from analysis.inputs.run_folder import read_run

    try:
        run = read_run(place.folder)
        if not read_json(place.folder / "summary.json") or not run.metrics.is_dir():
            analyze_run(place, terminal.emit)
        return run, table(run, "deliveries")
    except AnalysisError as error:
        raise InputError(error.message, error.hint) from error
    except OSError as error:
        raise TestbedError(
            f"the tables of {place.run} cannot be read: {error}",
            f"`testbed analyze {place.run}` writes them again",
        ) from error


# One message.


def _show_message(
    run: "Run",
    deliveries: "pa.Table",
    message: str,
    receiver: str | None,
    level: int | None,
    terminal: Terminal,
) -> None:
    from analysis.formatting import NARROW
    from analysis.report.sections.why import lines
    from analysis.stats.why import explain_all, of_message

    found = of_message(deliveries, message)
    if not found:
        raise InputError(
            f"no delivery of message {message} was expected in run {run.name}", _other_run(run)
        )
    if level is not None and found[0]["priority"] != level:
        raise InputError(
            f"message {message} has level {found[0]['priority']}, not {level}", "leave out --level"
        )
    chosen = [row for row in found if receiver in (None, row["receiver"])]
    if not chosen:
        receivers = [str(row["receiver"]) for row in found]
        raise InputError(
            f"message {message} was not for {receiver}", f"it was for {few(receivers)}"
        )
    (explained,) = explain_all(run, deliveries, chosen[:1])
    terminal.document({"run": run.name, "deliveries": [_document(explained, run)]})
    terminal.show(
        *(line.replace(NARROW, " ") for line in lines(explained, run.start_ns)),
    )
    if others := [str(row["receiver"]) for row in chosen[1:]]:
        worst = "lost" if explained.lost else "the slowest"
        terminal.emit(Note(f"this delivery is {worst}; --receiver selects another: {few(others)}"))


def _other_run(run: "Run") -> str:
    return f"`testbed why {run.name}` lists messages of this run; for another run: testbed why RUN --message ID"


def _document(explained: "Why", run: "Run") -> dict[str, Any]:
    """An explanation for programs: the delivery, its cause, hops and disturbances, and the sentence."""
    from analysis.formatting import NARROW
    from analysis.report.sections.why import sentence

    end = explained.conclusion
    whole = asdict(replace(explained, conclusion=replace(end, hop=None, crossing=None)))
    return {
        **whole["delivery"],
        "level_deliveries": explained.level_deliveries,
        "faster": explained.faster,
        "why": sentence(explained, run.start_ns).replace(NARROW, " "),
        "cause": {
            "kind": end.cause.value,
            "seconds": end.seconds,
            "hop": end.hop and end.hop.number,
            "link": end.crossing and end.crossing.link,
            "direction": end.crossing and end.crossing.direction,
            "others": [asdict(one) for one in end.crossing.others] if end.crossing else [],
            "disturbance": _disturbance(whole["conclusion"]["disturbance"]),
        },
        "journey": [
            {**hop, "disturbance": _disturbance(hop["disturbance"])} for hop in whole["hops"]
        ],
        "disturbances": [_disturbance(one) for one in whole["disturbances"]],
    }


def _disturbance(one: dict[str, Any] | None) -> dict[str, Any] | None:
    """Null instead of an end that never came."""
    from analysis.inputs.manifest import NEVER_NS

    return one and {**one, "until_ns": None if one["until_ns"] == NEVER_NS else one["until_ns"]}


# The slowest of a run.


def _show_slowest(
    run: "Run",
    deliveries: "pa.Table",
    count: int,
    receiver: str | None,
    level: int | None,
    terminal: Terminal,
) -> list[dict[str, Any]]:
    from analysis.report.sections.why import row_of
    from analysis.stats.why import explain_all, slowest

    _check_known(deliveries, receiver, level)
    found = explain_all(run, deliveries, slowest(deliveries, count, level, receiver))
    documents = [_document(one, run) for one in found]
    lost = _lost(deliveries, receiver, level)
    terminal.document({"run": run.name, "deliveries": documents, "lost": lost["count"]})
    if found:
        terminal.show(_table([row_of(one, run.start_ns) for one in found], run.name))
    else:
        terminal.show("the run has no deliveries")
    return documents


def _show_next(
    name: str,
    deliveries: "pa.Table",
    shown: list[dict[str, Any]],
    receiver: str | None,
    level: int | None,
    terminal: Terminal,
) -> None:
    """The commands that explain one delivery: the slowest, and a lost one."""
    command = f"testbed why {shlex.quote(name)} --message"
    if shown:
        to = f" --receiver {shown[0]['receiver']}"
        terminal.show(f"hop by hop: {command} {shown[0]['id']}{to}")
    if (lost := _lost(deliveries, receiver, level))["count"]:
        were = "delivery was" if lost["count"] == 1 else "deliveries were"
        to = f" --receiver {lost['receiver']}"
        terminal.show(f"{lost['count']} {were} lost; one of them: {command} {lost['id']}{to}")


def _check_known(deliveries: "pa.Table", receiver: str | None, level: int | None) -> None:
    """InputError if the run has no such receiver or level."""
    receivers = sorted(set(deliveries["receiver"].to_pylist())) if receiver is not None else []
    if receiver is not None and receiver not in receivers:
        hint = did_you_mean(receiver, receivers) if receivers else "the run expected no deliveries"
        raise InputError(f"no message was for {receiver!r}", hint)
    levels = sorted(set(deliveries["priority"].to_pylist()), reverse=True)
    if level is not None and level not in levels:
        raise InputError(
            f"the run expected no delivery of level {level}",
            f"levels of this run: {', '.join(map(str, levels))}" if levels else "",
        )


def _lost(deliveries: "pa.Table", receiver: str | None, level: int | None) -> dict[str, Any]:
    """The number of lost deliveries, and one of the highest level."""
    import pyarrow.compute as pc

    chosen = pc.field("delay_s").is_null()
    if level is not None:
        chosen &= pc.field("priority") == level
    if receiver is not None:
        chosen &= pc.field("receiver") == receiver
    lost = deliveries.filter(chosen).select(["priority", "published_ns", "id", "receiver"])
    order = [("priority", "descending"), *((n, "ascending") for n in lost.column_names[1:])]
    first = lost.sort_by(order).slice(0, 1).to_pylist()
    return {"count": lost.num_rows, **(first[0] if first else {})}


def _table(rows: Sequence[dict[str, Any]], run: str) -> Table:
    from analysis.formatting import NARROW

    found = Table(title=f"run {run}: the slowest deliveries")
    found.add_column("message", no_wrap=True)
    found.add_column("to")
    found.add_column("level", justify="right")
    found.add_column("delay", justify="right", no_wrap=True)
    found.add_column("why", ratio=1)
    for row in rows:
        texts = (row["id"], row["receiver"], str(row["level"]), row["delay"], row["why"])
        found.add_row(*(escape(text.replace(NARROW, " ")) for text in texts))
    return found
