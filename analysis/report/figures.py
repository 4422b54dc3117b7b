"""Writes the report's charts as files for papers: SVG and PDF, in light colours, as wide as a page's text."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from analysis.inputs.run_folder import read_run
from analysis.report import pages
from analysis.report.report import charts_of

TEXT_WIDTH_MM = 170.0
FONT = "Helvetica, Arial, sans-serif"


def write_figures(run_dir: Path, folder: Path | None = None) -> list[Path]:
    """Write each chart of an analysed run as SVG and PDF; by default into `figures` of the run folder."""
    import vl_convert

    run = read_run(Path(run_dir).resolve())
    place = folder if folder is not None else run.folder / "figures"
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, chart in charts_of(run).items():
        text = standalone(chart)
        written.append(pages.write(place / f"{name}.svg", text))
        path = place / f"{name}.pdf"
        path.write_bytes(vl_convert.svg_to_pdf(text))
        written.append(path)
    return written


def standalone(svg: str) -> str:
    """A standalone SVG file from an element of the page: with its colours and styles, as wide as a page's text."""
    css = files("analysis.report").joinpath("templates/style.css").read_text()
    colours = light_colours(css)
    rules = ""
    if 'class="topology"' in svg:
        own = re.findall(r"\.topology (\.[^{]+|text [^{]*)\{([^}]*)\}", css)
        rules = "".join(f"{selector}{{{body}}}" for selector, body in own)
        rules = f"<style>text {{ font-family: {FONT}; }} {rules}</style>"
    width, height = _size(svg)
    opening, rest = svg.split(">", 1)
    opening = re.sub(r'\s(?:width|height|xmlns)="[^"]*"', "", opening)
    tall = TEXT_WIDTH_MM * height / width
    size = f'xmlns="http://www.w3.org/2000/svg" width="{TEXT_WIDTH_MM:g}mm" height="{tall:.1f}mm"'
    whole = f"{opening.replace('<svg', f'<svg {size}', 1)}>{rules}{rest}\n"
    return re.sub(r"var\((--[\w-]+)\)", lambda found: colours[found[1]], whole)


def light_colours(css: str) -> dict[str, str]:
    """The page's colours on light paper, by the names of their variables."""
    light = css[css.index(":root") : css.index("@media")]
    found: list[Any] = re.findall(r"(--[\w-]+):\s*([^;]+);", light)
    return {**dict(found), "--card": "#ffffff"}


def _size(svg: str) -> tuple[float, float]:
    box = re.search(r'viewBox="([^"]+)"', svg)
    if box is None:
        raise ValueError("a chart without a viewBox")
    _, _, width, height = (float(number) for number in box[1].split())
    return width, height
