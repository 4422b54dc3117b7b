"""The topology as an SVG drawing: brokers in the middle or all at their coordinates, lines where messages went."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from analysis.runfolder import RunNode

WIDTH, HEIGHT, MARGIN = 760, 460, 70
MOST_LABELS = 40  # more names than this would cover each other
MOST_PROFILES = 16

SHAPES = {
    "broker": Markup('<rect class="node broker" x="-13" y="-13" width="26" height="26" rx="5"/>'),
    "sensor": Markup('<path class="node sensor" d="M0,-12 L12,9 L-12,9 Z"/>'),
    "subscriber": Markup('<circle class="node subscriber" r="11"/>'),
}
DASHES = ("", "7 4", "2 4", "10 3 2 3", "4 2")


@dataclass(frozen=True, slots=True)
class Edge:
    """Two nodes between which messages were sent."""

    one: str
    other: str


def draw(nodes: Sequence[RunNode], edges: Sequence[Edge]) -> Markup:
    """The drawing as an inline SVG element."""
    place = _by_coordinates(nodes) or _around_brokers(nodes)
    kinds = {node.name: node for node in nodes}
    profiles = sorted({node.profile for node in nodes})
    parts = [_line(edge, kinds, place, profiles, len(edges)) for edge in edges]
    parts += [_node(node, place[node.name], len(nodes)) for node in nodes]
    label = f"Topology: {len(nodes)} nodes, {len(edges)} overlay links."
    return Markup(
        '<svg role="img" aria-label="{}" class="topology" viewBox="0 0 {} {}">{}</svg>'
    ).format(label, WIDTH, HEIGHT, Markup("").join(parts))


def star(nodes: Sequence[RunNode]) -> list[Edge]:
    """What to draw when no message was seen: everybody to the first broker."""
    brokers = [node.name for node in nodes if node.kind == "broker"]
    return [Edge(node.name, brokers[0]) for node in nodes if brokers and node.name != brokers[0]]


def _by_coordinates(nodes: Sequence[RunNode]) -> dict[str, tuple[float, float]] | None:
    """North up, scaled to the drawing; None unless every node has a place of its own."""
    if (
        not nodes
        or len({node.at for node in nodes}) < len(nodes)
        or any(n.at is None for n in nodes)
    ):
        return None
    places = {node.name: node.at for node in nodes if node.at}
    middle = math.radians(sum(lat for lat, _ in places.values()) / len(places))
    flat = {name: (lon * math.cos(middle), -lat) for name, (lat, lon) in places.items()}
    left, top = (min(spot[axis] for spot in flat.values()) for axis in (0, 1))
    width, height = (
        max(spot[axis] for spot in flat.values()) - low for axis, low in ((0, left), (1, top))
    )
    scale = min(
        (WIDTH - 2 * MARGIN) / width if width else math.inf,
        (HEIGHT - 2 * MARGIN) / height if height else math.inf,
    )
    if math.isinf(scale):
        return None
    return {
        name: (
            WIDTH / 2 + (x - left - width / 2) * scale,
            HEIGHT / 2 + (y - top - height / 2) * scale,
        )
        for name, (x, y) in flat.items()
    }


def _around_brokers(nodes: Sequence[RunNode]) -> dict[str, tuple[float, float]]:
    """Brokers on a small ring, sensors on the left half of a large one, subscribers on the right half."""
    brokers = [node for node in nodes if node.kind == "broker"]
    left = [node for node in nodes if node.kind == "sensor"]
    right = [node for node in nodes if node.kind not in ("broker", "sensor")]
    place = {}
    inner = 0.0 if len(brokers) == 1 else 0.42
    for number, node in enumerate(brokers):
        place[node.name] = _on_ring(inner, 2 * math.pi * number / len(brokers) - math.pi / 2)
    for side, first in ((left, math.pi / 2), (right, -math.pi / 2)):
        for number, node in enumerate(side):
            place[node.name] = _on_ring(1.0, first + math.pi * (number + 0.5) / len(side))
    return place


def _on_ring(radius: float, angle: float) -> tuple[float, float]:
    return (
        WIDTH / 2 + radius * (WIDTH / 2 - MARGIN) * math.cos(angle),
        HEIGHT / 2 + radius * (HEIGHT / 2 - MARGIN) * math.sin(angle),
    )


def _line(
    edge: Edge,
    nodes: dict[str, RunNode],
    place: dict[str, tuple[float, float]],
    profiles: list[str],
    count: int,
) -> Markup:
    (x1, y1), (x2, y2) = place[edge.one], place[edge.other]
    ends = [nodes[edge.one], nodes[edge.other]]
    outer = [node for node in ends if node.kind != "broker"] or ends
    names = list(dict.fromkeys(node.profile for node in outer))
    dash = DASHES[profiles.index(names[0]) % len(DASHES)]
    text = Markup(
        '<line class="link" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke-dasharray="{}"/>'
    ).format(x1, y1, x2, y2, dash)
    if count <= MOST_PROFILES:
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        text += Markup('<text class="profile" x="{:.1f}" y="{:.1f}">{}</text>').format(
            x, y - 4, " / ".join(names)
        )
    return text


def _node(node: RunNode, at: tuple[float, float], count: int) -> Markup:
    shape = SHAPES.get(node.kind, SHAPES["subscriber"])
    title = Markup("<title>{} ({}, {})</title>").format(node.name, node.kind, node.profile)
    name = Markup('<text class="name" y="28">{}</text>').format(node.name)
    extra = (
        Markup('<text class="profile" y="43">{}</text>').format(node.profile)
        if node.kind == "broker"
        else Markup("")
    )
    words = name + extra if count <= MOST_LABELS or node.kind == "broker" else Markup("")
    return Markup('<g transform="translate({:.1f},{:.1f})">{}{}{}</g>').format(
        *at, title, shape, words
    )
