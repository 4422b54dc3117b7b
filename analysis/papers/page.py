"""report.html of a reproduction that is made of cells: checks first, then each figure; no scripts, nothing fetched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis import pages
from analysis.papers.ways import OF_WAY, title

Figure = Mapping[str, Any]
SPREAD = {"mean", "low", "high", "trials"}


@dataclass(frozen=True, slots=True)
class Words:
    """What the page of a paper says in its own words."""

    title: str
    heading: str
    notes: Sequence[str]


def write_page(
    folder: Path, result: Mapping[str, Any], words: Words, drawings: Mapping[str, str]
) -> Path:
    """Write it and say where it is. `drawings`: chart of each figure that has one, by its name."""
    return pages.write(folder / "report.html", render(result, words, drawings))


def render(result: Mapping[str, Any], words: Words, drawings: Mapping[str, str]) -> str:
    """The page's HTML."""
    figures = [
        {
            **figure,
            "note": figure.get("note"),
            "drawing": Markup(drawings[name]) if (name := figure["figure"]) in drawings else None,
            "table": _table(figure["cells"]),
            "patterns": _patterns(figure["cells"]),
            "said": list(dict.fromkeys(filter(None, map(_statement, figure["cells"])))),
        }
        for figure in result["figures"]
        if figure["cells"]
    ]
    return pages.render("cells.html", result=result, words=words, figures=figures)


def _patterns(cells: Sequence[Mapping[str, Any]]) -> str:
    """What the letters mean, where there are some."""
    known = {
        cell["pattern"]: f"{cell['pattern']} {cell['publishers']}, {cell['subscribers']}"
        for cell in cells
        if "pattern" in cell
    }
    return " · ".join(known[pattern] for pattern in sorted(known))


def _statement(cell: Mapping[str, Any]) -> str | None:
    paper = cell["paper"]
    return paper.get("statement") if paper else None


def _table(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Heads and rows of text; the first columns say which cell it is."""
    named = [name for name in cells[0] if name not in (*OF_WAY, "paper", "ours")]
    way = any(name in cells[0] for name in OF_WAY)
    values = list(cells[0]["ours"])
    return {
        "heads": [*(["way"] if way else []), *named, *values],
        "words": int(way),
        "rows": [
            [
                *([title(cell)] if way else []),
                *(_text(cell[name]) for name in named),
                *(_text(cell["ours"][value]) for value in values),
            ]
            for cell in cells
        ],
    }


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping) and set(value) == SPREAD:
        if value["low"] is None:
            return _text(value["mean"])
        return f"{_text(value['mean'])} ± {value['high'] - value['mean']:.2g}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
