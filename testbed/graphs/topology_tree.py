"""A topology as a tree: the core, its routers, and the nodes; equal nodes share one entry."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from testbed.links.values import EMPTY, format_values
from testbed.topology.model import Node, NodeKind, Profile, Shape, Topology

CORE = "core"
MAX_TOPICS_SHOWN = 3  # topics that are named


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One node, or several of a group that have the same kind of link to the same place; `behind` hang on each."""

    label: str
    count: int
    kind: NodeKind
    profile: str
    topics: tuple[str, ...]
    behind: tuple["TreeEntry", ...] = ()

    @property
    def named(self) -> str:
        """`siren`, or `slopes × 200`."""
        return self.label if self.count == 1 else f"{self.label} × {self.count}"

    @property
    def about(self) -> str:
        """Its kind and its topics."""
        more = len(self.topics) - MAX_TOPICS_SHOWN
        topics = ", ".join(self.topics[:MAX_TOPICS_SHOWN]) + (f", {more} more" if more > 0 else "")
        return f"{self.kind}: {topics}" if topics else str(self.kind)


def tree_entries(topology: Topology) -> tuple[TreeEntry, ...]:
    """The entries at the core, in file order."""
    behind: dict[str | None, list[Node]] = {}
    for node in topology.nodes:
        behind.setdefault(node.router, []).append(node)
    return _alike(behind.get(None, ()), behind)


def _alike(
    nodes: Iterable[Node], behind: Mapping[str | None, Sequence[Node]]
) -> tuple[TreeEntry, ...]:
    found: dict[TreeEntry, list[str]] = {}
    for node in nodes:
        hanging = _alike(behind.get(node.name, ()), behind)
        one = TreeEntry(
            node.group or node.name, 1, node.kind, node.profile, node.subscribed_topics, hanging
        )
        found.setdefault(one, []).append(node.name)
    return tuple(
        replace(one, label=names[0]) if len(names) == 1 else replace(one, count=len(names))
        for one, names in found.items()
    )


def profiles_in_use(topology: Topology) -> dict[str, str]:
    """Each profile with its description in one line."""
    used = dict.fromkeys(node.profile for node in topology.nodes)
    return {name: describe_profile(topology.profile(name)) for name in used}


def describe_profile(profile: Profile) -> str:
    """Up and down, once if they are the same."""
    up, down = _shape(profile.up), _shape(profile.down)
    return up if up == down else f"up {up}; down {down}"


def _shape(shape: Shape) -> str:
    values = {name: text for name, text in format_values(asdict(shape)).items() if text != EMPTY}
    text = [values.get("rate", "not limited")]
    if "delay" in values:
        jitter = f" ± {values['jitter']}" if "jitter" in values else ""
        text.append(f"{values['delay']}{jitter}")
    if "loss" in values:
        text.append(f"{values['loss']} lost")
    return ", ".join(text)


def document(topology: Topology) -> dict[str, Any]:
    """For programs: every node, and every link with where it leads."""
    return {
        "topology": topology.name,
        "overlay": topology.overlay.method,
        "nodes": [
            {
                "name": node.name,
                "number": node.number,
                "kind": node.kind,
                "group": node.group,
                "topics": list(node.subscribed_topics),
                "brokers": list(node.brokers),
            }
            for node in topology.nodes
        ],
        "links": [
            {"node": node.name, "to": node.router or CORE, "profile": node.profile}
            for node in topology.nodes
        ],
        "profiles": profiles_in_use(topology),
    }


# The sheet of every drawing: white, with a title, in the same font and colours.


SHEET_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #16202b; text-anchor: middle; dominant-baseline: central; }
.quiet { fill: #566372; text-anchor: start; }
.small { font-size: 11px; }
"""


def sheet(width: float, height: float, title: str, style: str, parts: Iterable[str]) -> str:
    """The whole SVG."""
    text = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
        f' aria-label="{text}"><style>{SHEET_STYLE.rstrip()}{style}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/><text class="quiet" x="14" y="20">{text}</text>'
        f"{''.join(parts)}</svg>\n"
    )


# The drawing of a topology: the core on the left, then its routers and nodes; each link has the name of its profile.


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
    """An entry in its place, and where its link begins."""

    entry: TreeEntry
    x: float
    y: float
    width: float
    line_from: tuple[float, float]


def plain_svg(topology: Topology) -> str:
    """The whole picture."""
    hanging = tree_entries(topology)
    rows = sum(_rows(entry) for entry in hanging)
    middle = TOP + ROW * max(rows, 1) / 2
    width = _box_width((CORE,))
    boxes = list(_boxes(hanging, LEFT + width / 2 + GAP, TOP, (LEFT + width / 2, middle)))
    profiles = [f"{name}: {text}" for name, text in profiles_in_use(topology).items()]
    foot = TOP + ROW * max(rows, 1) + 20
    parts = [
        *(_line(box) for box in boxes),
        _node(LEFT - width / 2, middle, width, "node", (CORE,)),
        *(
            _node(box.x, box.y, box.width, f"node {box.entry.kind}", _labels(box.entry))
            for box in boxes
        ),
        *(
            f'<text class="quiet small" x="14" y="{foot + LINE * place:g}">{escape(text)}</text>'
            for place, text in enumerate(profiles)
        ),
    ]
    title = f"{topology.name}: {len(topology.nodes)} nodes, overlay {topology.overlay.method}"
    right = max((box.x + box.width for box in boxes), default=0.0)
    longest = max(map(len, (title, *profiles)))
    whole = max(right + 20, 28 + LETTER * longest)
    return sheet(whole, foot + LINE * len(profiles), title, STYLE, parts)


def _labels(entry: TreeEntry) -> tuple[str, ...]:
    return entry.named, entry.about


def _box_width(labels: Sequence[str]) -> float:
    return max(NARROWEST, round(LETTER * max(map(len, labels))) + PADDING)


def _rows(entry: TreeEntry) -> int:
    return max(1, sum(_rows(one) for one in entry.behind))


def _boxes(
    hanging: Sequence[TreeEntry], x: float, top: float, line_from: tuple[float, float]
) -> Iterator[_Box]:
    """One below the other; each as high as what is behind it."""
    width = max((_box_width(_labels(entry)) for entry in hanging), default=0.0)
    for entry in hanging:
        height = ROW * _rows(entry)
        box = _Box(entry, x, top + height / 2, width, line_from)
        yield box
        yield from _boxes(entry.behind, x + width + GAP, top, (x + width, box.y))
        top += height


def _line(box: _Box) -> str:
    (x, y), bend = box.line_from, 30
    return (
        f'<path class="line" d="M{x:g},{y:g} C{x + bend:g},{y:g} {x + bend:g},{box.y:g} {x + 2 * bend:g},{box.y:g} '
        f'H{box.x:g}"/><text class="profile" x="{box.x - 5:g}" y="{box.y - 8:g}">{escape(box.entry.profile)}</text>'
    )


def _node(x: float, y: float, width: float, kind: str, labels: Sequence[str]) -> str:
    lines = [
        f'<text class="{"small" if place else "label"}" x="{x + width / 2:g}" '
        f'y="{y + (place - (len(labels) - 1) / 2) * (LINE - 3):g}">{escape(text)}</text>'
        for place, text in enumerate(labels)
    ]
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y - HEIGHT / 2:g}" width="{width:g}" height="{HEIGHT}" rx="5"/>'
        f"{''.join(lines)}"
    )
