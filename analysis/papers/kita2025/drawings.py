"""The figures of Kita 2025 as charts. What differs only in how an empty slot is filled stands in the tables alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.papers import charts
from analysis.papers.kita2025 import mixed
from analysis.papers.kita2025.checks import FORWARDS_OF_PSG, PATH_OF_PSG
from analysis.papers.kita2025.figures import HIGHEST, LARGE, SUPPORT
from analysis.papers.points import PATTERN, by_pattern, nodes_panel, nodes_panels, points
from analysis.papers.ways import PRIORITISED, title, titles, with_priority

Figure = Mapping[str, Any]
Cell = Mapping[str, Any]
THOUSAND = 1_000
HOPS, MESSAGES = "hops, mean", "messages for one publication"
OURS_PANELS = {
    "path": ("path_of_psg", PATH_OF_PSG),
    "messages": ("forwards_of_psg", FORWARDS_OF_PSG),
}


def drawings(figures: Iterable[Figure]) -> dict[str, str]:
    """The chart of each figure, by its name."""
    return {
        figure["figure"]: drawn
        for figure in figures
        if figure["cells"] and (drawn := _draw(figure["figure"], figure["title"], figure["cells"]))
    }


def _draw(name: str, label: str, cells: Sequence[Cell]) -> str | None:
    if name == mixed.NAME:
        return mixed.drawing(cells, label)
    if name.startswith("tables-"):
        value, axis = ("path", HOPS) if name == "tables-path" else ("forwards", MESSAGES)
        return charts.lines(
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
    return charts.dots(found, panels, (PATTERN, axis), name, label) if found else None


def _usual(cells: Iterable[Cell]) -> Iterator[Cell]:
    for cell in cells:
        if cell["support"] in ("", SUPPORT) and cell["strategy"] != "split":
            yield cell


def _most_urgent(cell: Cell) -> bool:
    """At priority 1 a method is the one that it builds on."""
    return cell["method"] not in PRIORITISED or bool(cell["priority"] == HIGHEST)


def _ours(name: str, label: str, cells: Sequence[Cell]) -> str | None:
    """Only large topics, to which the goal belongs."""
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
    return charts.goals(found, limits, axes, name, label) if found else None
