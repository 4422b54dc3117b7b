"""A topology drawn: the core on the left, then what hangs on it; each line with the name of its profile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from testbed.graphs.plain import CORE, Twig, profiles_in_use, twigs
from testbed.graphs.sheet import sheet
from testbed.topology.model import Topology

LEFT, TOP = 70, 60
GAP, HEIGHT, ROW = 150, 38, 52  # between columns, of a box, and of a row
LETTER, PADDING, LINE = 6.6, 14, 18  # of the text
NARROWEST = 90
STYLE = """
.node { stroke-width: 1.5; fill: #f1f3f5; stroke: #8d96a1; }
.broker { fill: #fbe9e7; stroke: #b1182e; }
.sensor { fill: #fdf2dc; stroke: #8a5a00; }
.subscriber { fill: #e4f1f6; stroke: #17617c; }
.router { fill: #ecebf7; stroke: #5a4fa0; }
.line { fill: none; stroke: #8d96a1; stroke-width: 1.5; }
.profile { text-anchor: end; fill: #566372; font-size: 11px; }
"""


@dataclass(frozen=True, slots=True)
class _Box:
    """A twig in its place, and where its line begins."""

    twig: Twig
    x: float
    y: float
    width: float
    line_from: tuple[float, float]


def plain_svg(topology: Topology) -> str:
    """The whole picture."""
    hanging = twigs(topology)
    rows = sum(_rows(twig) for twig in hanging)
    middle = TOP + ROW * max(rows, 1) / 2
    width = _box_width((CORE,))
    boxes = list(_boxes(hanging, LEFT + width / 2 + GAP, TOP, (LEFT + width / 2, middle)))
    profiles = [f"{name}: {told}" for name, told in profiles_in_use(topology).items()]
    foot = TOP + ROW * max(rows, 1) + 20
    parts = [
        *(_line(box) for box in boxes),
        _node(LEFT - width / 2, middle, width, "node", (CORE,)),
        *(
            _node(box.x, box.y, box.width, f"node {box.twig.kind}", _words(box.twig))
            for box in boxes
        ),
        *(
            f'<text class="quiet small" x="14" y="{foot + LINE * place:g}">{escape(told)}</text>'
            for place, told in enumerate(profiles)
        ),
    ]
    title = f"{topology.name}: {len(topology.nodes)} nodes, overlay {topology.overlay.method}"
    right = max((box.x + box.width for box in boxes), default=0.0)
    longest = max(map(len, (title, *profiles)))
    whole = max(right + 20, 28 + LETTER * longest)
    return sheet(whole, foot + LINE * len(profiles), title, STYLE, parts)


def _words(twig: Twig) -> tuple[str, ...]:
    return twig.named, twig.about


def _box_width(words: Sequence[str]) -> float:
    return max(NARROWEST, round(LETTER * max(map(len, words))) + PADDING)


def _rows(twig: Twig) -> int:
    return max(1, sum(_rows(one) for one in twig.behind))


def _boxes(
    hanging: Sequence[Twig], x: float, top: float, line_from: tuple[float, float]
) -> Iterator[_Box]:
    """One below the other; each as high as what is behind it."""
    width = max((_box_width(_words(twig)) for twig in hanging), default=0.0)
    for twig in hanging:
        height = ROW * _rows(twig)
        box = _Box(twig, x, top + height / 2, width, line_from)
        yield box
        yield from _boxes(twig.behind, x + width + GAP, top, (x + width, box.y))
        top += height


def _line(box: _Box) -> str:
    (x, y), bend = box.line_from, 30
    return (
        f'<path class="line" d="M{x:g},{y:g} C{x + bend:g},{y:g} {x + bend:g},{box.y:g} {x + 2 * bend:g},{box.y:g} '
        f'H{box.x:g}"/><text class="profile" x="{box.x - 5:g}" y="{box.y - 8:g}">{escape(box.twig.profile)}</text>'
    )


def _node(x: float, y: float, width: float, kind: str, words: Sequence[str]) -> str:
    lines = [
        f'<text class="{"small" if place else "label"}" x="{x + width / 2:g}" '
        f'y="{y + (place - (len(words) - 1) / 2) * (LINE - 3):g}">{escape(told)}</text>'
        for place, told in enumerate(words)
    ]
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y - HEIGHT / 2:g}" width="{width:g}" height="{HEIGHT}" rx="5"/>'
        f"{''.join(lines)}"
    )
