"""The report's section on paths: the width of a line is its traffic; the path of one alert has numbered hops."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from analysis.inputs.results import table
from analysis.inputs.run_folder import Run, RunNode
from analysis.report.sections import topology_map
from analysis.report.sections.topology_map import Edge

THINNEST, WIDEST = 1.0, 14.0  # pixels
BADGE = 9  # radius of a hop's number
LINE = Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"{}/>')


def view(run: Run, path: Sequence[str] | None) -> dict[str, Any] | None:
    """The view of the template; None if no message was seen between nodes of the lab."""
    crossed = ways(table(run, "hops", ["src", "dst"]), run.nodes)
    if not crossed:
        return None
    known = {node.name for node in run.nodes}
    shown = list(path) if path and set(path) <= known else []
    return {
        "drawing": draw(run.nodes, crossed, shown),
        "most": max(crossed.values()),
        "alert": " → ".join(shown),
        "placed": len({node.at for node in run.nodes if node.at}) == len(run.nodes),
    }


def ways(hops: pa.Table, nodes: Sequence[RunNode]) -> dict[Edge, int]:
    """Number of messages between two nodes in both directions, along the routers that the nodes are behind."""
    known = {node.name for node in nodes}
    counted = hops.group_by(["src", "dst"]).aggregate([([], "count_all")]).to_pylist()
    crossed: Counter[Edge] = Counter()
    for row in counted:
        if {row["src"], row["dst"]} <= known:
            hop = Edge(row["src"], row["dst"])
            for piece in topology_map.through_routers(nodes, [hop]):
                one, other = sorted((piece.one, piece.other))
                crossed[Edge(one, other)] += row["count_all"]
    return dict(sorted(crossed.items(), key=lambda item: (item[0].one, item[0].other)))


def width(count: int, most: int) -> float:
    """The width in pixels, proportional to the number of messages."""
    return max(THINNEST, WIDEST * count / most)


def draw(nodes: Sequence[RunNode], crossed: dict[Edge, int], path: Sequence[str]) -> Markup:
    """The drawing as an inline SVG element; `path`: the nodes of the alert's path."""
    place = topology_map.places(nodes, list(crossed))
    most = max(crossed.values())
    lines = [
        LINE.format(
            "way",
            *place[edge.one],
            *place[edge.other],
            Markup(' stroke-width="{:.1f}"').format(width(count, most)),
        )
        for edge, count in crossed.items()
    ]
    steps = [topology_map.through_routers(nodes, [Edge(*pair)]) for pair in pairwise(path)]
    pieces = [piece for step in steps for piece in step]
    for name in ("alert", "alert inside"):
        lines += [LINE.format(name, *place[p.one], *place[p.other], "") for p in pieces]
    badges = _badges([step[0] if step else None for step in steps], place)
    label = f"Paths of messages between {len(nodes)} nodes on {len(crossed)} lines."
    if path:
        label += f" The path of the slowest alert: {', '.join(path)}."
    content = Markup("").join([*lines, topology_map.node_marks(nodes, place, crossed), *badges])
    return topology_map.framed(label, content)


def _badges(
    pieces: Sequence[Edge | None], place: dict[str, tuple[float, float]]
) -> Iterator[Markup]:
    """The numbers of the hops, each in the middle of its line; on one line beside each other."""
    lines = [tuple(sorted((piece.one, piece.other))) if piece else None for piece in pieces]
    for number, line in enumerate(lines):
        if line is not None:
            share = (lines[:number].count(line) + 1) / (lines.count(line) + 1)
            yield _badge(number + 1, place[line[0]], place[line[1]], share)


def _badge(
    number: int, one: tuple[float, float], other: tuple[float, float], share: float
) -> Markup:
    x, y = (one[axis] + (other[axis] - one[axis]) * share for axis in (0, 1))
    return Markup(
        '<circle class="step" cx="{:.1f}" cy="{:.1f}" r="{}"/><text class="number" x="{:.1f}" y="{:.1f}">{}</text>'
    ).format(x, y, BADGE, x, y + 4, number)
