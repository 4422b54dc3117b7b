"""`testbed replay RUN`: play a run's publications and faults again, and hold what came of it against the first time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from testbed.backends.common.names import BACKENDS, SIMULATED
from testbed.cli.commands.compare import (
    EXCEEDED,
    Limits,
    WorseThan,
    compared,
    exceeded,
    judged,
    not_judged,
    read_limit,
    read_worse,
    refuse_unjudged,
)
from testbed.cli.measurement import (
    analyze_run,
    report_line,
    warn_of_fidelity,
    warn_of_missing,
    write_run_report,
)
from testbed.cli.options import AsJson, NoReport, Overrides, RunName, Strict
from testbed.cli.tables.comparison import comparison_tables
from testbed.cli.tables.summary import summary_tables
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.jsonfiles import read_json
from testbed.lab.replay import Replay, play_again, replay_difference, replay_of
from testbed.places import RunPlace
from testbed.progress import Incomplete, Note, StageEnded, StageStarted
from testbed.recording.difference import Difference
from testbed.recording.from_capture import read_priorities, script_from_capture
from testbed.records import find_run, read_manifest
from testbed.topology import load
from testbed.topology.model import Scenario
from testbed.topology.units import parse_duration

# `testbed replay --from-capture`: the application messages of captures, published again in a lab.


STAGE = "reading the captures"


def captured_replay(
    captures: Sequence[str],
    file: Path | None,
    overrides: Sequence[str],
    priorities: Sequence[str],
    name: str | None,
    terminal: Terminal,
) -> Replay:
    """Replay the messages of captures on the lab of this file, instead of its own scenario."""
    from analysis.errors import AnalysisError
    from analysis.protocols.application_messages import application_messages

    if file is None:
        raise InputError(
            "--from-capture needs a lab whose sensors publish", "name its file with --on FILE"
        )
    levels = read_priorities(priorities)
    topology = load(file, name=name, overrides=overrides)
    terminal.emit(StageStarted(STAGE))
    try:
        found = application_messages(captures, _numbers(captures))
    except AnalysisError as error:
        raise InputError(error.message, error.hint) from error
    terminal.emit(StageEnded(STAGE))
    script, notes = script_from_capture(found.messages, topology, levels)
    for note in notes:
        terminal.emit(Note(note))
    if found.incomplete:
        terminal.emit(
            Incomplete(f"{found.incomplete} messages are left out: no capture has all of them")
        )
    scenario = Scenario(duration_s=script.lasts_s, settle_s=topology.scenario.settle_s)
    about = {
        "of": [*captures],
        "as": "captured",
        "messages": len(script.publications),
        "notes": notes,
    }
    return Replay(replace(topology, scenario=scenario), script, file, None, about)


def _numbers(captures: Sequence[str]) -> dict[int, str]:
    """Which node has which number, if the captures are those of a run."""
    known: dict[int, str] = {}
    for path in captures:
        folder = Path(path)
        for manifest in (folder / "run.json", folder.parent / "run.json"):
            document = read_json(manifest)
            if isinstance(document, dict) and isinstance(document.get("topology"), dict):
                known |= {node["number"]: node["name"] for node in document["topology"]["nodes"]}
    return known


WITHIN = "100ms"
SHOWN = 20  # differences in the table; --json has them all

Backend = Annotated[
    str | None,
    typer.Option("--backend", help="docker, netns or simulated. Default: the backend of the run."),
]
AsPlanned = Annotated[
    bool,
    typer.Option(
        "--as-planned/--as-happened",
        help="Replay at the times of the scenario, or at the recorded times.",
    ),
]
Within = Annotated[
    str,
    typer.Option(
        help="Tolerance of a publication's time; a larger difference counts as another publication."
    ),
]
FromCapture = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="Instead of a run: replay the application messages (of testbed, or MQTT) in these captures. "
        "Files or folders; repeatable.",
    ),
]
On = Annotated[
    Path | None,
    typer.Option(
        "--on",
        metavar="FILE",
        help="With --from-capture: topology file of the lab that publishes the messages.",
    ),
]
Priority = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOPIC=LEVEL",
        help="With --from-capture: the level of a topic (alerts/#=5, +/tilt=2) or of a QoS (qos1=4). Repeatable.",
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", help="The lab's name. Default: the name of the run's lab.")
]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed replay demo --backend simulated")(replay)


def replay(
    run: RunName = None,
    backend: Backend = None,
    overrides: Overrides = None,
    as_planned: AsPlanned = False,
    name: Name = None,
    within: Within = WITHIN,
    from_capture: FromCapture = None,
    on: On = None,
    priority: Priority = None,
    limit: Limits = None,
    worse_than: WorseThan = None,
    no_report: NoReport = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Replay the publications and faults of a run from its folder, or the messages of captures, and compare.

    The exit code is 1 if the publications differ from those of the run, also in time, or if a limit is exceeded.
    """
    with Terminal(as_json, strict) as terminal:
        limits = [read_limit(one) for one in limit or ()]
        asked = [read_worse(one) for one in worse_than or ()]
        within_ns = _nanoseconds(within)
        if from_capture:
            _refuse_with_captures(run, as_planned, bool(limits or asked))
            what = captured_replay(
                from_capture, on, overrides or (), priority or (), name, terminal
            )
            _replay_captured(what, backend, within_ns, terminal, no_report)
            return
        if on is not None or priority:
            raise InputError(
                "--on and --priority need --from-capture", "remove them, or add --from-capture"
            )
        first = find_run(run)
        what = replay_of(first, overrides or (), planned=as_planned, name=name)
        again, difference, _ = played(what, backend or _own_backend(first), within_ns, terminal)
        document = compared([[first], [again]], terminal)
        refuse_unjudged(document, limits, asked)
        document |= judged(document, limits, asked)
        report = None if no_report else str(write_run_report(again, terminal.emit))
        document |= {
            "replay": what.about,
            "publications": difference.as_json(),
            "report": report,
        }
        document["ok"] = document["ok"] and difference.empty
        terminal.document(document)
        terminal.show(
            *difference_tables(difference),
            *comparison_tables(document),
            report_line(again.run, report),
        )
        failed = exceeded(document)
        for sentence in (*failed, *not_judged(document)):
            terminal.emit(Note(sentence))
        if failed or not difference.empty:
            raise typer.Exit(EXCEEDED)


def _refuse_with_captures(run: str | None, as_planned: bool, judged: bool) -> None:
    if run is not None:
        raise InputError("`replay` takes either a run or --from-capture", "leave one of them out")
    if as_planned or judged:
        raise InputError(
            "captures have no scenario and no run to compare with",
            "leave --as-planned, --limit and --worse-than out",
        )


def _replay_captured(
    what: Replay, backend: str | None, within_ns: int, terminal: Terminal, no_report: bool
) -> None:
    again, difference, summary = played(what, backend, within_ns, terminal)
    report = None if no_report else str(write_run_report(again, terminal.emit))
    document = {"replay": what.about, "publications": difference.as_json(), "ok": difference.empty}
    terminal.document({**summary, **document, "report": report})
    tables = (*difference_tables(difference), *summary_tables(summary))
    terminal.show(*tables, report_line(again.run, report))
    if not difference.empty:
        raise typer.Exit(EXCEEDED)


def played(
    what: Replay, backend: str | None, within_ns: int, terminal: Terminal
) -> tuple[RunPlace, Difference, dict[str, Any]]:
    """The new run; how its publications differ from those that were wanted; its summary."""
    terminal.if_interrupted = "interrupted; this command removed what it had created"
    again = play_again(what, backend, terminal.emit)
    terminal.if_interrupted = (
        f"interrupted; the captures in {again.folder} are complete: `testbed analyze {again.run}`"
    )
    difference = replay_difference(what, again, within_ns)
    summary = analyze_run(again, terminal.emit)
    warn_of_fidelity(summary, terminal)
    warn_of_missing(summary, terminal)
    return again, difference, summary


def _nanoseconds(text: str) -> int:
    try:
        return round(parse_duration(text) * 1e9)
    except ValueError as error:
        raise InputError(f"--within: {error}", "write it with its unit, e.g. 100ms") from error


def _own_backend(run: RunPlace) -> str | None:
    """The backend of the run; None (the best one) if that backend does not run labs."""
    name = str(read_manifest(run)["backend"]["name"])
    return name if name == SIMULATED or name in BACKENDS else None


def difference_tables(difference: Difference) -> list[Table | str]:
    """For people: one sentence if nothing differs."""
    limit = f"within {difference.within_ns / 1e6:g} ms"
    if difference.empty:
        return [
            f"publications: all {difference.same} again, {limit} of their times "
            f"(at most {difference.farthest_ns / 1e6:.1f} ms off), and no others"
        ]
    document = difference.as_json()
    rows = [(kind, one) for kind in ("moved", "missing", "extra") for one in document[kind]]
    table = Table(
        title=f"publications that differ ({difference.same} are the same, {limit})",
        caption=f"and {len(rows) - SHOWN} more: --json has them all" if len(rows) > SHOWN else None,
    )
    for column in ("", "at", "node", "topic", "level", "size", "by"):
        table.add_column(column)
    for kind, one in rows[:SHOWN]:
        table.add_row(kind, *_cells(one))
    return [table]


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    by = f"{one['by_s'] * 1000:+.1f} ms" if "by_s" in one else ""
    said = (one["node"], one["topic"], str(one["priority"]), f"{one['size']} B")
    return f"{one['at_s']:.3f} s", *said, by
