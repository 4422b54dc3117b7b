"""A comparison of runs as tables."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from analysis.formatting import both_sides
from nodes.protocol.wire import LEVEL_NAMES
from testbed.cli.tables.summary import interval, quantile

DELAYS = {"p50": "delay p50", "p95": "delay p95", "p99": "delay p99", "max": "delay max"}
HOPS = {"hops_mean": "hops mean", "hops_max": "hops max"}
WHOLE = {
    "copies_per_publication": "copies per publication",
    "control_bytes_per_s": "control bytes/s a broker",
    "overhead": "bytes for a byte of payload",
}
NAMED = (
    "delivery",
    "overlay",
    "backend",
    "emulator",
    "seed",
)  # below the table if equal in all runs
NONE = "–"


def comparison_tables(document: dict[str, Any]) -> list[Table | Text]:
    """All runs side by side; how sure the differences are; of one scenario, message by message; then the limits."""
    return [
        _side_by_side(document),
        *_effects(document),
        *_pairs(document),
        *_limits(document),
        *_worse(document),
    ]


def _side_by_side(document: dict[str, Any]) -> Table:
    runs, ratios = document["runs"], document["ratios"]
    unsure = any("error_s" in figures for run in runs for figures in run["levels"].values())
    caption = "× is the multiple of the first run"
    caption += "; ≈: the clocks could not show a difference" if unsure else ""
    same = ", ".join(
        f"{name} {document['same'][name]}" for name in NAMED if name in document["same"]
    )
    caption = f"the same in all: {same}\n{caption}" if same else caption
    table = Table(title="runs side by side", caption=caption)
    table.add_column("")
    for run in runs:
        table.add_column(_head(run), justify="right")
    table.add_row("delivered", *(f"{run['delivered']} of {run['expected']}" for run in runs))
    table.add_row("lost", *(str(run["lost"]) for run in runs))
    table.add_row("handed twice", *(_value(run["handed_twice"], str) for run in runs))
    for name, title in WHOLE.items():
        table.add_row(title, *_cells(runs, ratios, name, _plain))
    for level in sorted({level for run in runs for level in run["levels"]}, reverse=True):
        table.add_section()
        here, times = _of_level(runs, level), _of_level(ratios, level)
        title = f"level {level} {LEVEL_NAMES[int(level)]}: lost"
        table.add_row(title, *(_lost(figures) for figures in here), style="bold")
        for name, title in DELAYS.items():
            table.add_row(f"  {title}", *_delays(here, times, name))
        for name, title in HOPS.items():
            table.add_row(f"  {title}", *_cells(here, times, name, _plain))
    return table


def _head(run: dict[str, Any]) -> str:
    """The run, what distinguishes it from the others, and the number of trials."""
    names = short([*run["settings"]])
    settings = zip(names, run["settings"].values(), strict=True)
    trials = [f"{run['trials']} trials"] if run["trials"] > 1 else []
    return escape(
        "\n".join([run["run"], *(f"{name} {value}" for name, value in settings), *trials])
    )


def short(paths: Sequence[str]) -> list[str]:
    """The ends of paths, as long as is needed to make them distinct."""
    steps = [path.split(".") for path in paths]
    for size in range(1, max(map(len, steps), default=0) + 1):
        ends = [".".join(one[-size:]) for one in steps]
        if len(set(ends)) == len(ends):
            return ends
    return list(paths)


def _effects(document: dict[str, Any]) -> list[Table]:
    """Ratios and differences with their intervals."""
    found = [one for one in document["effects"] if one["levels"]]
    if not found:
        return []
    drawn = {kind for one in found for kind in one["drawn"]}
    table = Table(
        title=f"how sure the differences to {document['runs'][0]['run']} are",
        caption=f"95 % intervals over {' and '.join(sorted(drawn, reverse=True))}; "
        "Cliff's delta: 1 if every delay is longer than every one of the first, -1 if shorter",
    )
    for column in ("run", "level"):
        table.add_column(column)
    for column in ("p50", "p95", "p99", "mean", "lost", "Cliff's delta"):
        table.add_column(column, justify="right")
    for one in found:
        for level, figures in one["levels"].items():
            bounds = _not_reached(document, one["run"], level)
            table.add_row(
                one["run"],
                level,
                *(_ratio(figures, name, bounds) for name in ("p50", "p95", "p99", "mean")),
                _within(figures["lost_share"], lambda share: f"{share:+.2%}"),
                _within(figures["cliffs_delta"], lambda delta: f"{delta:+.2f}"),
            )
    return [table]


def _not_reached(document: dict[str, Any], run: str, level: str) -> dict[str, Any]:
    """The percentiles that this run or the first did not reach, with the value or the bound of both."""
    levels = [one["levels"].get(level, {}) for one in document["ratios"] if one["run"] == run]
    return {name: sides for one in levels for name, sides in one.get("not_reached", {}).items()}


def _ratio(figures: dict[str, Any], name: str, bounds: dict[str, Any]) -> str:
    """The ratio of a statistic with its interval, or what is known of both sides."""
    if figures[name]["value"] is None and name in bounds:
        return both_sides(bounds[name]).replace("; ", "\n")
    if "reached" in figures[name] and name == "mean":
        return "not all came"
    return _within(figures[name], _times)


def _within(figures: dict[str, float | None], write: Callable[[float], str]) -> str:
    value = figures["value"]
    unsure = " ≈" if figures.get("within_clock_error") else ""
    if value is None:
        return NONE + unsure
    return f"{write(value)}{unsure}\n{interval(figures, write)}"


def _worse(document: dict[str, Any]) -> list[Table]:
    if not document["worse"]:
        return []
    table = Table("metric", "worse than", "found", "interval", "of", "", title="worse than asked")
    for one in document["worse"]:
        verdict = "[green]no[/]" if one["ok"] else "[bold red]worse[/]"
        table.add_row(
            one["metric"],
            f"{one['worse_than']:.1%}",
            NONE if one["found"] is None else f"{one['found']:+.1%}",
            NONE if one["found"] is None else interval(one, lambda share: f"{share:+.1%}"),
            one["of"],
            verdict,
        )
    return [table]


def _of_level(runs: list[dict[str, Any]], level: str) -> list[dict[str, Any]]:
    return [run["levels"].get(level, {}) for run in runs]


def _cells(
    values: list[dict[str, Any]],
    ratios: list[dict[str, Any]],
    name: str,
    write: Callable[[float], str],
) -> list[str]:
    """The value of each run, and of all but the first its ratio."""
    figures = [_value(value.get(name), write) for value in values]
    times = [ratio.get(name) for ratio in ratios]
    return figures[:1] + [
        cell if ratio is None else f"{cell}  {_times(ratio)}"
        for cell, ratio in zip(figures[1:], times, strict=True)
    ]


def _delays(values: list[dict[str, Any]], ratios: list[dict[str, Any]], name: str) -> list[str]:
    """As cells, in no more digits than clocks leave; values within the clocks' error have no ratio."""
    figures = [_delay(value, name) for value in values]
    cells = figures[:1]
    for cell, ratio in zip(figures[1:], ratios, strict=True):
        times = ratio.get(name)
        if name in ratio.get("within_clock_error", ()):
            cells.append(f"{cell}  ≈")
        else:
            cells.append(cell if times is None else f"{cell}  {_times(times)}")
    return cells


def _delay(figures: dict[str, Any], name: str) -> str:
    return quantile(figures, name, figures.get("error_s", {}).get(name, 0.0)) or NONE


def _lost(figures: dict[str, Any]) -> str:
    return f"{figures['lost']} of {figures['expected']}" if figures else NONE


def _value(value: Any, write: Callable[[Any], str]) -> str:
    return NONE if value is None else write(value)


def _times(ratio: float) -> str:
    return f"×{ratio:.2f}" if ratio >= 0.1 else f"×{ratio:.2g}"


def _plain(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if value < 1000 else f"{value:,.0f}"


def _pairs(document: dict[str, Any]) -> list[Table | Text]:
    first = document["runs"][0]["run"]
    compared = [one for one in document["pairs"] if not one.get("reason")]
    figures: list[Table | Text] = [
        Text(f"{one['run']} is of another scenario than {first}: {one['reason']}")
        for one in document["pairs"]
        if one.get("reason")
    ]
    if not compared:
        return figures
    table = Table(
        title=f"the same message at the same receiver, beside {first}",
        caption="delays as multiples of the first run's, message by message",
    )
    for column in ("run", "pairs", "same hops", "same path", "level"):
        table.add_column(column, justify="left" if column == "run" else "right")
    for column in ("delay p5", "p50", "p95"):
        table.add_column(column, justify="right")
    for one in compared:
        counts = [
            one["run"],
            str(one["pairs"]),
            *(_share(one, n) for n in ("same_hops", "same_paths")),
        ]
        for level, delay in one["delays"].items() or [(NONE, None)]:
            times = [_times(delay[name]) if delay else NONE for name in ("p05", "p50", "p95")]
            table.add_row(*counts, level, *times)
            counts = [""] * len(counts)
    return [table, *figures]


def _share(one: dict[str, Any], name: str) -> str:
    return f"{one[name] / one['pairs']:.1%}" if one["pairs"] else NONE


def _limits(document: dict[str, Any]) -> list[Table]:
    if not document["limits"]:
        return []
    table = Table("limit", "at most", "found", "of", "", title="limits")
    for one in document["limits"]:
        verdict = "[green]kept[/]" if one["ok"] else "[bold red]exceeded[/]"
        table.add_row(
            one["limit"],
            f"{one['at_most']:g}",
            NONE if one["found"] is None else f"{one['found']:.4g}",
            one["of"],
            verdict,
        )
    return [table]
