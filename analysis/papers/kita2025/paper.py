"""Kita 2025: tables, figures, checks and texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.papers.kita2025 import mixed
from analysis.papers.kita2025.figures import (
    FORWARDS_OF_PSG,
    HIGHEST,
    LARGE,
    OF_TABLES,
    OF_TOPIC,
    PATH_OF_PSG,
    SUPPORT,
    checks,
    figures,
)
from analysis.papers.methods import (
    OF_WAY,
    PATTERN,
    PRIORITISED,
    by_pattern,
    nodes_panel,
    nodes_panels,
    points,
    title,
    titles,
    with_priority,
)
from analysis.papers.reproduction import PageTexts, Paper, Results
from analysis.papers.tables import means, read_table
from analysis.report import interval_charts
from analysis.report.drawing import Drawing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The figures as charts. Variants that differ only in how an empty slot is filled are in the tables only.


Figure = Mapping[str, Any]
Cell = Mapping[str, Any]
THOUSAND = 1_000
HOPS, MESSAGES = "hops, mean", "messages for one publication"
OURS_PANELS = {
    "path": ("path_of_psg", PATH_OF_PSG),
    "messages": ("forwards_of_psg", FORWARDS_OF_PSG),
}


def drawings(figures: Iterable[Figure]) -> dict[str, Drawing]:
    """The chart of each figure, by its name."""
    return {
        figure["figure"]: drawn
        for figure in figures
        if figure["cells"] and (drawn := _draw(figure["figure"], figure["title"], figure["cells"]))
    }


def _draw(name: str, label: str, cells: Sequence[Cell]) -> Drawing | None:
    if name == mixed.NAME:
        return mixed.drawing(cells, label)
    if name.startswith("tables-"):
        value, axis = ("path", HOPS) if name == "tables-path" else ("forwards", MESSAGES)
        return interval_charts.lines(
            points(
                filter(_most_urgent, cells),
                value,
                at=lambda cell: cell["subscribers"],
                panel=nodes_panel,
                name=with_priority,
            ),
            nodes_panels(cells),
            ("subscribers of a topic", axis),
            name,
            label,
            doubling=True,
        )
    if name == "ours":
        return _ours(name, label, cells)
    shown = list(_usual(cells))
    panels = nodes_panels(shown)
    if name == "delay":
        urgent = [cell for cell in shown if cell["priority"] == HIGHEST]
        found, axis = by_pattern(urgent, "delay_ms"), "ms, mean, at priority 5"
    elif name == "forwards-5":
        found, axis = by_pattern(shown, "forwards"), MESSAGES
    else:
        found, axis = by_pattern(shown, "path"), HOPS
    return interval_charts.dots(found, panels, (PATTERN, axis), name, label) if found else None


def _usual(cells: Iterable[Cell]) -> Iterator[Cell]:
    for cell in cells:
        if cell["support"] in ("", SUPPORT) and cell["strategy"] != "split":
            yield cell


def _most_urgent(cell: Cell) -> bool:
    """Whether the cell has the highest priority; at priority 1 a method equals its base method."""
    return cell["method"] not in PRIORITISED or bool(cell["priority"] == HIGHEST)


def _ours(name: str, label: str, cells: Sequence[Cell]) -> Drawing | None:
    """Only large topics, to which the goal applies."""
    large = [cell for cell in cells if cell["pattern"] in LARGE]
    order = titles(large)
    found = [
        {
            "way": title(cell),
            "at": f"{cell['pattern']} {cell['nodes'] // THOUSAND}k",
            "panel": panel,
            "mean": cell["ours"][value],
        }
        for panel, (value, _) in OURS_PANELS.items()
        for cell in sorted(large, key=lambda cell: order.index(title(cell)))
    ]
    limits = {panel: limit for panel, (_, limit) in OURS_PANELS.items()}
    axes = ("pattern and nodes", "ours, of PSG-TBPS's")
    return interval_charts.goals(found, limits, axes, name, label) if found else None


TEXTS = PageTexts(
    title="Kita 2025, reproduced",
    heading="Urgent publications on a Skip Graph: Kita 2025, reproduced",
    notes=(
        "Overlays are built as they are when nobody joins or leaves, and every publication of every topic is followed."
        " Path: hops to the first copy that arrives. Messages: all that nodes send each other for one publication,"
        " duplicates included. Where the thesis can be read in several ways, each reading is a series of its own.",
    ),
)


def measure(spark: "SparkSession", folder: Path) -> Results:
    """Compute means over trials with Spark, and figures and checks from them."""
    topics = means(
        read_table(spark, folder, "topics"),
        (*OF_TOPIC, *OF_WAY, "priority"),
        ("path", "forwards", "starts", "delay_ms"),
    )
    tables = means(
        read_table(spark, folder, "tables"),
        (*OF_TABLES, "method", "priority"),
        ("path", "forwards", "one_hop", "delay_ms"),
    )
    shared = mixed.read(spark, folder)
    return Results(
        [*figures(topics, tables), mixed.figure(shared)],
        [*checks(topics, tables), *mixed.checks(shared)],
    )


KITA2025 = Paper("kita2025", TEXTS, measure, drawings)
