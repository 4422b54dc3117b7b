"""The registry entry of a paper: all that `testbed reproduce` needs of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from testbed.cli.terminal import Terminal
from testbed.errors import InputError

Result = dict[str, Any]  # what result.json holds


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user wants of a new reproduction; an option that was not given is None."""

    quick: bool = False
    backend: str | None = None
    master: str | None = None
    trials: int | None = None

    def given(self) -> list[str]:
        """Those options that not every paper knows."""
        special = {"backend": self.backend, "master": self.master, "trials": self.trials}
        return [name for name, value in special.items() if value is not None]


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A paper: how its experiments are run and measured, and how the result is shown."""

    name: str
    about: str  # a few words, for --help
    options: Sequence[str]  # those of `Asked.given` that it knows
    anew: Callable[[Asked, Path, Terminal], Result]  # run everything; results into the folder
    again: Callable[[Path, Terminal], Result]  # measure what an earlier one left in the folder
    tables: Callable[[Result], Sequence[Table]]
    warnings: Callable[[Result], Iterable[str]]  # doubts about its measurements


MEANING = {
    "backend": "selects where nodes run",
    "master": "selects where cells are computed",
    "trials": "sets the number of trials of each cell",
}


def refuse_strange_options(paper: Reproduction, asked: Asked, again: bool) -> None:
    """InputError for an option that would have no effect."""
    for option in asked.given():
        if again:
            raise InputError(
                f"--{option} {MEANING[option]}; --from runs no experiment", f"leave --{option} out"
            )
        if option not in paper.options:
            known = ", ".join(f"--{name}" for name in paper.options)
            raise InputError(
                f"--{option} {MEANING[option]}; {paper.name} does not have this option",
                f"options of {paper.name}: --quick, {known}",
            )


def checks_table(result: Result) -> Table:
    """For people: which checks hold."""
    checks = Table(title="Checks", title_justify="left")
    for name in ("", "check", "found"):
        checks.add_column(name)
    for check in result["checks"]:
        checks.add_row(_verdict(check["ok"]), check["check"], check["found"])
    return checks


def _verdict(ok: bool | None) -> Text:
    if ok is None:
        return Text("-")
    return Text("ok", style="green") if ok else Text("not ok", style="red")


def failed_checks(result: Result) -> Iterable[str]:
    """A sentence for each check that does not hold."""
    return [
        f"not reproduced: {check['check']}; {check['found']}"
        for check in result["checks"]
        if check["ok"] is False
    ]


def warnings_of_runs(result: Result) -> Iterable[str]:
    """Warnings on overloaded labs."""
    for run in result["runs"]:
        yield from (f"{run['run']}: {reason}" for reason in run["fidelity"]["reasons"])


# Cells of a figure as a table for people: a row for each place, a column for each way.


Cell = Mapping[str, Any]


def cells_of(result: Mapping[str, Any], name: str) -> list[Cell]:
    """The cells of the figure of this name; none if there is no such figure."""
    return [cell for one in result["figures"] if one["figure"] == name for cell in one["cells"]]


def pivot(
    title: str,
    cells: Iterable[Cell],
    places: Sequence[str],
    way: Callable[[Cell], str],
    value: str,
) -> Table:
    """`places`: which values of a cell say its row; `value`: which of ours is shown, with its mean."""
    from analysis.papers.methods import titles

    shown = list(cells)
    ways = titles(shown, way)
    rows: dict[tuple[Any, ...], dict[str, str]] = {}
    for cell in shown:
        row = rows.setdefault(tuple(cell[name] for name in places), {})
        row[way(cell)] = number(cell["ours"][value]["mean"])
    table = Table(title=title, title_justify="left")
    for name in places:
        table.add_column(name, justify="right")
    for name in ways:
        table.add_column(name, justify="right")
    for place, texts in rows.items():
        table.add_row(*map(_plain, place), *(texts.get(name, "-") for name in ways))
    return table


def number(value: float) -> str:
    """Three digits are enough."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
