"""`testbed compare RUN RUN...`: runs side by side, and message by message if they are of one scenario."""

from typing import Annotated, Any

import typer

from testbed.cli.comparison_tables import comparison_tables
from testbed.cli.options import AsJson
from testbed.cli.run_commands import analyze_run
from testbed.cli.stages import stages
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.events import Note
from testbed.jsonfiles import read_json
from testbed.places import RunPlace
from testbed.records import did_you_mean, the_run

EXCEEDED = 1  # exit code

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="Ids, folders or labs of two or more runs; all are held against the first.",
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=NUMBER",
        help="At most so many times the first's: delay, p50, p95, p99, max, hops, copies, control, overhead; "
        "at most so many: lost, handed-twice; at most this share of the same messages: other-hops, other-paths. "
        "Several times. Exit code 1 if one is exceeded.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Example: testbed compare valley-simulated valley --limit hops=1.0 --limit delay=1.2"
    )(compare)


def compare(runs: Runs, limit: Limits = None, as_json: AsJson = False) -> None:
    """Set runs side by side: delays, hops, copies, control traffic and losses, as ratios to the first.

    Runs of the same scenario and seed (a simulated and a real one, say, or two overlays) are also compared message by
    message.
    """
    with Terminal(as_json) as terminal:
        limits = [read_limit(one) for one in limit or ()]
        places = distinct(runs)
        document = _compare(places, terminal)
        _refuse_unjudged(document, limits)
        document |= _judged(document, limits)
        terminal.document(document)
        terminal.show(*comparison_tables(document))
        exceeded = [one for one in document["limits"] if not one["ok"]]
        for one in exceeded:
            terminal.emit(Note(_sentence(one)))
        if exceeded:
            raise typer.Exit(EXCEEDED)


def distinct(names: list[str]) -> list[RunPlace]:
    """The runs of these names; InputError if there are too few, or one is named twice."""
    if len(names) < 2:
        raise InputError(
            "one run alone cannot be compared", "name two or more: testbed compare RUN RUN"
        )
    places = [the_run(name) for name in names]
    for place, (one, name) in enumerate(zip(places, names, strict=True)):
        if one in places[:place]:
            raise InputError(
                f"{name!r} is run {one.run}, which was named already",
                "a lab's name means its newest run; name older ones by their id",
            )
    return places


def read_limit(text: str) -> tuple[str, float]:
    """`hops=1.0`; InputError for anything else."""
    from analysis.limits import KINDS

    name, _, number = text.partition("=")
    if name not in KINDS:
        raise InputError(
            f"--limit {text!r}: nothing is called {name!r}", did_you_mean(name, [*KINDS])
        )
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise InputError(
            f"--limit {text!r} has no number from 0 on", f"for example --limit {name}=1.2"
        )
    return name, value


def _compare(places: list[RunPlace], terminal: Terminal) -> dict[str, Any]:
    from analysis.comparison import compare as compare_sides
    from analysis.comparison import side
    from analysis.errors import AnalysisError
    from analysis.runfolder import read_run

    for place in places:
        summary = read_json(place.folder / "summary.json") or analyze_run(place, terminal.emit)
        if "overlay" not in summary:
            terminal.emit(
                Note(
                    f"run {place.run} was analysed by an earlier version: copies and control traffic are not known "
                    f"until `testbed analyze {place.run}`"
                )
            )
    try:
        sides = [side(read_run(place.folder)) for place in places]
        return compare_sides(sides, stages(terminal.emit))
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error


def _judged(document: dict[str, Any], limits: list[tuple[str, float]]) -> dict[str, Any]:
    from analysis.limits import judge

    verdicts = judge(document, limits)
    return {"limits": verdicts, "ok": all(one["ok"] for one in verdicts)}


def _refuse_unjudged(document: dict[str, Any], limits: list[tuple[str, float]]) -> None:
    """InputError for a limit that these runs have nothing for: not to be judged is not to have passed."""
    from analysis.limits import judge

    for verdict in judge(document, limits):
        if verdict["found"] is None:
            reasons = [
                f"run {one['run']} is of another scenario: {one['reason']}"
                for one in document["pairs"]
                if one.get("reason")
            ]
            raise InputError(
                f"--limit {verdict['limit']}: the runs have nothing in common that it could be held against",
                "; ".join(reasons) or "leave it out, or see the table for what is known",
            )


def _sentence(verdict: dict[str, Any]) -> str:
    return (
        f"{verdict['limit']} is {verdict['found']:.4g} ({verdict['of']}), "
        f"more than {verdict['at_most']:g}"
    )
