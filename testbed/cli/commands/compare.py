"""`testbed compare RUN RUN...`: runs side by side, and message by message if they are of one scenario.

A side may be several runs, which are its trials: `testbed compare a-1,a-2,a-3 b-1,b-2,b-3`.
"""

from collections.abc import Iterable
from itertools import chain
from math import inf, nan
from pathlib import Path
from typing import Annotated, Any

import typer

from testbed.cli.measurement import analyze_run, stages
from testbed.cli.options import AsJson, Strict
from testbed.cli.tables.comparison import comparison_tables
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, TestbedError
from testbed.jsonfiles import read_json
from testbed.places import RunPlace
from testbed.progress import Note
from testbed.records import did_you_mean, find_run

EXCEEDED = 1  # exit code

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="Ids, folders or labs of two or more runs; each is compared with the first. "
        "Runs joined by commas are trials of one side: a-1,a-2 b-1,b-2.",
    ),
]
WorseThan = Annotated[
    list[str] | None,
    typer.Option(
        "--worse-than",
        metavar="NAME=SHARE",
        help="Exit with code 1 if a side is worse than the first by more than this share, and the 95 % interval of the "
        "difference is above zero. delay, p50, p95, p99 and mean: share of the first's value; lost: share of "
        "all deliveries. A percentile that only the first reached counts as worse. Example: p95=10%. Repeatable.",
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=NUMBER",
        help="Exit with code 1 if a side exceeds this limit. Ratio to the first: delay, p50, p95, p99, max, hops, "
        "copies, control, overhead; number: lost, handed-twice; share of the common messages: other-hops, "
        "other-paths. A percentile that only the first reached exceeds every limit. Repeatable.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Example: testbed compare valley-simulated valley --limit hops=1.0 --limit delay=1.2"
    )(compare)


def compare(
    runs: Runs,
    limit: Limits = None,
    worse_than: WorseThan = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Compare runs with the first: delays, hops, copies, control traffic and losses, as ratios.

    Differences have 95 % confidence intervals, over trials if a side has several runs.

    Runs of the same scenario and seed (for example a simulated and a real one, or two overlays) are also compared
    message by message.
    """
    with Terminal(as_json, strict) as terminal:
        limits = [read_limit(one) for one in limit or ()]
        asked = [read_worse(one) for one in worse_than or ()]
        sides = distinct(runs)
        document = compared(sides, terminal)
        refuse_unjudged(document, limits, asked)
        document |= judged(document, limits, asked)
        terminal.document(document)
        terminal.show(*comparison_tables(document))
        failed = exceeded(document)
        for sentence in (*failed, *not_judged(document)):
            terminal.emit(Note(sentence))
        if failed:
            raise typer.Exit(EXCEEDED)


def distinct(names: list[str]) -> list[list[RunPlace]]:
    """The sides with their runs; InputError if there are too few, or one run is named twice."""
    if len(names) < 2:
        raise InputError(
            "a comparison needs two or more runs", "name them: testbed compare RUN RUN"
        )
    named: dict[RunPlace, str] = {}
    sides: list[list[RunPlace]] = []
    for side in names:
        sides.append([])
        for name in _trials(side):
            place = find_run(name)
            if place in named:
                raise InputError(
                    f"{name!r} is run {place.run}, which is already named",
                    "a lab's name means its newest run; name older ones by their id",
                )
            named[place] = name
            sides[-1].append(place)
    return sides


def _trials(side: str) -> list[str]:
    """The runs of a side; a folder may have commas in its name."""
    if (Path(side) / "run.json").is_file():
        return [side]
    return [name for name in side.split(",") if name]


def read_worse(text: str) -> tuple[str, float]:
    """`p95=10%` or `p95=0.1`; InputError for anything else."""
    from analysis.stats.effects import METRICS

    name, number = _named("--worse-than", text, METRICS)
    share = _number(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    if not 0 <= share < inf:
        raise InputError(
            f"--worse-than {text!r} needs a share of 0 or more",
            f"write it like --worse-than {name}=10%",
        )
    return name, share


def read_limit(text: str) -> tuple[str, float]:
    """`hops=1.0`; InputError for anything else."""
    from analysis.stats.thresholds import KINDS

    name, number = _named("--limit", text, KINDS)
    value = _number(number)
    if not 0 <= value < inf:
        raise InputError(
            f"--limit {text!r} needs a number of 0 or more", f"write it like --limit {name}=1.2"
        )
    return name, value


def _named(option: str, text: str, names: Iterable[str]) -> tuple[str, str]:
    """The texts before and after the equals sign; InputError if the first is none of the names."""
    name, _, number = text.partition("=")
    if name not in names:
        raise InputError(
            f"{option} {text!r}: there is no metric {name!r}", did_you_mean(name, [*names])
        )
    return name, number


def _number(text: str) -> float:
    """The number; NaN for a text that is none."""
    try:
        return float(text)
    except ValueError:
        return nan


def compared(places: list[list[RunPlace]], terminal: Terminal) -> dict[str, Any]:
    """The document; analyses runs first that were not analysed yet."""
    from analysis.errors import AnalysisError
    from analysis.inputs.run_folder import read_run
    from analysis.stats.comparison import compare as compare_sides
    from analysis.stats.comparison import side

    for place in chain.from_iterable(places):
        summary = read_json(place.folder / "summary.json") or analyze_run(place, terminal.emit)
        if any("not_within_s" not in level for level in summary["delay_s"].values()):
            terminal.emit(
                Note(
                    f"run {place.run} was analysed by an earlier version: its delays are computed again here; "
                    f"`testbed analyze {place.run}` corrects its summary and its report"
                )
            )
        if "overlay" not in summary:
            terminal.emit(
                Note(
                    f"run {place.run} was analysed by an earlier version without copies and control traffic: "
                    f"`testbed analyze {place.run}` adds them"
                )
            )
    try:
        sides = [side(*(read_run(place.folder) for place in runs)) for runs in places]
        return compare_sides(sides, stages(terminal.emit))
    except AnalysisError as error:
        raise TestbedError(error.message, error.hint) from error


def judged(
    document: dict[str, Any], limits: list[tuple[str, float]], asked: list[tuple[str, float]]
) -> dict[str, Any]:
    """The verdicts on these limits, for the document."""
    from analysis.stats.effects import judge_worse
    from analysis.stats.thresholds import judge

    verdicts, worse = judge(document, limits), judge_worse(document, asked)
    return {
        "limits": verdicts,
        "worse": worse,
        "ok": all(one["ok"] for one in (*verdicts, *worse)),
    }


def exceeded(document: dict[str, Any]) -> list[str]:
    """A sentence for each limit that was not kept."""
    failed = [_sentence(one) for one in document["limits"] if not one["ok"]]
    return failed + [_worse_sentence(one) for one in document["worse"] if not one["ok"]]


def refuse_unjudged(
    document: dict[str, Any], limits: list[tuple[str, float]], asked: list[tuple[str, float]]
) -> None:
    """InputError for a limit that cannot be judged on these runs: it must not count as passed."""
    from analysis.stats.effects import judge_worse
    from analysis.stats.thresholds import judge

    for worse in judge_worse(document, asked):
        if not worse["judged"]:
            _refuse_unreached(f"--worse-than {worse['metric']}", worse["not_judged"])
            raise InputError(
                f"--worse-than {worse['metric']}: the runs have no level in common with expected deliveries",
                "remove the option; the table shows what the runs have in common",
            )

    for verdict in judge(document, limits):
        if not verdict["judged"]:
            _refuse_unreached(f"--limit {verdict['limit']}", verdict["not_judged"])
            reasons = [
                f"run {one['run']} has another scenario: {one['reason']}"
                for one in document["pairs"]
                if one.get("reason")
            ]
            raise InputError(
                f"--limit {verdict['limit']}: the runs have no values in common for this limit",
                "; ".join(reasons)
                or "remove the option; the table shows what the runs have in common",
            )


def _refuse_unreached(option: str, names: list[str]) -> None:
    """InputError if neither run reached any of the percentiles."""
    if names:
        raise InputError(
            f"{option} cannot be judged, because too many deliveries had not arrived when the runs ended: "
            + "; ".join(names),
            "compare a smaller percentile or lost, or give the scenario a longer settle",
        )


def not_judged(document: dict[str, Any]) -> list[str]:
    """A sentence for each percentile that a limit is about, and that neither run reached."""
    options = [(f"--limit {one['limit']}", one) for one in document["limits"]]
    options += [(f"--worse-than {one['metric']}", one) for one in document["worse"]]
    return [
        f"{option} does not judge {name}" for option, one in options for name in one["not_judged"]
    ]


def _sentence(verdict: dict[str, Any]) -> str:
    if verdict["found"] is None:
        return f"{verdict['limit']} exceeds {verdict['at_most']:g}: {verdict['of']}"
    return (
        f"{verdict['limit']} is {verdict['found']:.4g} ({verdict['of']}), "
        f"more than {verdict['at_most']:g}"
    )


def _worse_sentence(verdict: dict[str, Any]) -> str:
    if verdict["found"] is None:
        return f"{verdict['metric']} is worse: {verdict['of']}"
    low, high = verdict["low"], verdict["high"]
    interval = f"{low:.1%} to {high:.1%}" if high is not None else f"from {low:.1%} on"
    return (
        f"{verdict['metric']} is worse by {verdict['found']:.1%} ({verdict['of']}; 95 % interval "
        f"{interval}), more than {verdict['worse_than']:.1%}"
    )
