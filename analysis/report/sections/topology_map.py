"""The topology as an SVG drawing, with a line for each pair of nodes that exchanged messages.

Nodes are drawn at their coordinates if all have some. Else a single broker is in the middle; several brokers have their
clients around them, and are drawn at their coordinates, or on a ring.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from markupsafe import Markup

from analysis.inputs.run_folder import RunNode


@dataclass(frozen=True, slots=True)
class Edge:
    """Two nodes between which messages were sent."""

    one: str
    other: str


def edges_of(hops: pa.Table, names: set[str]) -> list[Edge]:
    """Pairs of nodes that exchanged messages, each once."""
    pairs = zip(hops["src"].to_pylist(), hops["dst"].to_pylist(), strict=True)
    known = {(min(a, b), max(a, b)) for a, b in pairs if a in names and b in names}
    return [Edge(one, other) for one, other in sorted(known)]


WIDTH, HEIGHT, MARGIN = 760, 460, 70
NEAREST = 78  # nodes closer than this are moved apart, if there are few enough
MOST_LABELS = 40  # more names would overlap
MOST_LARGE = 60  # more nodes are drawn smaller
SMALL = 0.6
SMALLEST = 0.4
MOST_SMALL = 150  # more nodes are drawn smaller still
ON_AN_ARC = 50  # nodes on half a ring; more are drawn on several
ARCS_APART, MOST_ARCS = 0.1, 5  # relative to the outermost
ROUTERS_AT = 0.42
INNERMOST_ROUTERS_AT = 0.85  # those behind other routers are nearer to the sensors
RING = 0.72  # radius of the ring of brokers, relative to the drawing
BROKERS_APART = 52  # least distance of brokers with coordinates
CLIENT_DISTANCE = 60  # pixels from its broker
CLIENT_DISTANCE_LARGE_LAB = 38  # in a large lab
STEEP = 0.4  # a flatter line does not cross the name below its end
SPACE_ABOVE = 48  # pixels that a name and a profile need above a node
FAN = math.pi * 0.8  # angle of the clients of a broker on the ring
SHAPES = {
    "broker": Markup('<rect class="node broker" x="-13" y="-13" width="26" height="26" rx="5"/>'),
    "sensor": Markup('<path class="node sensor" d="M0,-12 L12,9 L-12,9 Z"/>'),
    "subscriber": Markup('<circle class="node subscriber" r="11"/>'),
    "router": Markup('<path class="node router" d="M0,-12 L12,0 L0,12 L-12,0 Z"/>'),
    "external": Markup(
        '<path class="node external" d="M-7,-12 L7,-12 L13,0 L7,12 L-7,12 L-13,0 Z"/>'
    ),
}
DASHES = ("", "7 4", "2 4", "10 3 2 3", "4 2")


def draw(nodes: Sequence[RunNode], edges: Sequence[Edge]) -> Markup:
    """The drawing as an inline SVG element."""
    place = places(nodes, edges)
    kinds = {node.name: node for node in nodes}
    profiles = sorted({node.profile for node in nodes})
    lines = Markup("").join(_line(edge, kinds, place, profiles) for edge in edges)
    label = f"Topology: {len(nodes)} nodes, {len(edges)} overlay links."
    return framed(label, lines + node_marks(nodes, place, edges))


def places(nodes: Sequence[RunNode], edges: Sequence[Edge]) -> dict[str, tuple[float, float]]:
    """The position of each node."""
    place = _by_coordinates(nodes)
    if place is None and sum(node.kind == "broker" for node in nodes) > 1:
        place = _around_each_broker(nodes, edges)
    return _apart(place) if place else _around_brokers(nodes)


def node_marks(
    nodes: Sequence[RunNode], place: dict[str, tuple[float, float]], edges: Iterable[Edge]
) -> Markup:
    """All nodes at their positions; a node with a single line has its name on the other side."""
    brokers = sum(node.kind == "broker" for node in nodes)
    above = named_above(place, edges)
    return Markup("").join(
        _node(node, place[node.name], len(nodes), brokers, node.name in above) for node in nodes
    )


def named_above(place: dict[str, tuple[float, float]], edges: Iterable[Edge]) -> set[str]:
    """Nodes whose only line leads down, through the name below, and which have space above."""
    down: dict[str, list[bool]] = {}
    for edge in edges:
        for one, other in ((edge.one, edge.other), (edge.other, edge.one)):
            x, y = (place[other][axis] - place[one][axis] for axis in (0, 1))
            down.setdefault(one, []).append(y > abs(x) * STEEP)
    return {
        name for name, paths in down.items() if paths == [True] and place[name][1] > SPACE_ABOVE
    }


def framed(label: str, content: Markup) -> Markup:
    """The SVG element around it."""
    return Markup(
        '<svg role="img" aria-label="{}" class="topology" viewBox="0 0 {} {}">{}</svg>'
    ).format(label, WIDTH, HEIGHT, content)


def star(nodes: Sequence[RunNode]) -> list[Edge]:
    """The edges to draw if no message was seen: from each node to the first broker."""
    brokers = [node.name for node in nodes if node.kind == "broker"]
    return [
        Edge(node.name, brokers[0])
        for node in nodes
        if brokers and node.name != brokers[0] and node.kind != "router"
    ]


def through_routers(nodes: Sequence[RunNode], edges: Sequence[Edge]) -> list[Edge]:
    """The edges along the routers that the nodes are behind, each once."""
    router = {node.name: node.router for node in nodes}
    pieces: dict[Edge, None] = {}
    for edge in edges:
        up, down = _routers_of(edge.one, router), _routers_of(edge.other, router)
        met = next((name for name in up if name in down), None)  # where the two ends meet
        if met is not None:
            up, down = up[: up.index(met) + 1], down[: down.index(met)]
        way = [edge.one, *up, *reversed(down), edge.other]
        for one, other in pairwise(way):
            if one != other and Edge(other, one) not in pieces:
                pieces[Edge(one, other)] = None
    return list(pieces)


def _routers_of(name: str, router: Mapping[str, str | None]) -> list[str]:
    """The routers between this node and the core, the nearest first."""
    found: list[str] = []
    at = router.get(name)
    while at is not None:
        found.append(at)
        at = router.get(at)
    return found


def _by_coordinates(nodes: Sequence[RunNode]) -> dict[str, tuple[float, float]] | None:
    """Positions with north up, scaled to the drawing; None unless every node has its own coordinates."""
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


def _apart(
    place: dict[str, tuple[float, float]], nearest: float = NEAREST
) -> dict[str, tuple[float, float]]:
    """The positions, moved no further than needed for readable names."""
    names = list(place)
    spots = [list(place[name]) for name in names]
    if len(names) > MOST_LABELS:
        return place
    for _ in range(200):
        moved = False
        for one in range(len(spots)):
            for other in range(one):
                x, y = (spots[one][axis] - spots[other][axis] for axis in (0, 1))
                distance = math.hypot(x, y)
                if distance >= nearest:
                    continue
                moved = True
                turn = math.atan2(y, x) if distance else 2.4 * one
                push = (nearest - distance) / 2 + 0.1
                for which, sign in ((one, 1), (other, -1)):
                    spots[which][0] = _within(spots[which][0] + sign * push * math.cos(turn), WIDTH)
                    spots[which][1] = _within(
                        spots[which][1] + sign * push * math.sin(turn), HEIGHT
                    )
        if not moved:
            break
    return {name: (x, y) for name, (x, y) in zip(names, spots, strict=True)}


def _within(value: float, size: int, margin: float = MARGIN) -> float:
    return min(max(value, margin), size - margin)


def _around_brokers(nodes: Sequence[RunNode]) -> dict[str, tuple[float, float]]:
    """Brokers on a small ring, sensors on the left half of a large one, subscribers on the right half.

    Routers are between their sensors and the brokers, those behind other routers nearer to the sensors.
    """
    brokers = [node for node in nodes if node.kind == "broker"]
    routers = [node for node in nodes if node.kind == "router"]
    order = {router.name: number for number, router in enumerate(routers)}
    above = {node.name: node.router for node in nodes}
    passed = {node.name: _routers_of(node.name, above) for node in nodes}
    deepest = max((len(passed[router.name]) for router in routers), default=0)
    left = [node for node in nodes if node.kind == "sensor"]
    left.sort(key=lambda node: [order.get(name, -1) for name in reversed(passed[node.name])])
    right = [node for node in nodes if node.kind not in ("broker", "sensor", "router")]
    place = {}
    inner = 0.0 if len(brokers) == 1 else 0.42
    for number, node in enumerate(brokers):
        place[node.name] = _on_ring(inner, 2 * math.pi * number / len(brokers) - math.pi / 2)
    for number, node in enumerate(routers):
        behind = [spot + 0.5 for spot, one in enumerate(left) if node.name in passed[one.name]]
        share = sum(behind) / len(behind) / len(left) if behind else (number + 0.5) / len(routers)
        depth = len(passed[node.name]) / deepest if deepest else 0.0
        radius = ROUTERS_AT + (INNERMOST_ROUTERS_AT - ROUTERS_AT) * depth
        place[node.name] = _on_ring(radius, math.pi / 2 + math.pi * share)
    for side, first in ((left, math.pi / 2), (right, -math.pi / 2)):
        arcs = _arcs(len(side))
        for number, node in enumerate(side):
            radius = 1.0 - ARCS_APART * (number % arcs)
            place[node.name] = _on_ring(radius, first + math.pi * (number + 0.5) / len(side))
    return place


def _arcs(count: int) -> int:
    """The number of concentric half rings that this many nodes need."""
    fits = (
        arcs
        for arcs in range(1, MOST_ARCS)
        if count / arcs <= ON_AN_ARC * (1 - ARCS_APART * (arcs - 1))
    )
    return next(fits, MOST_ARCS)


def _around_each_broker(
    nodes: Sequence[RunNode], edges: Sequence[Edge]
) -> dict[str, tuple[float, float]]:
    """Each client beside its broker; nodes that exchanged no messages are in the middle."""
    brokers = [node for node in nodes if node.kind == "broker"]
    place = _apart(_by_coordinates([node for node in nodes if node.at]) or {}, BROKERS_APART)
    outward: dict[str, float] = {}
    if any(broker.name not in place for broker in brokers):
        place = {}
        for number, broker in enumerate(brokers):
            angle = 2 * math.pi * number / len(brokers) - math.pi / 2
            place[broker.name] = _on_ring(RING, angle)
            outward[broker.name] = angle
    talked = _broker_of_each(edges, {broker.name for broker in brokers})
    clients: dict[str | None, list[str]] = {}
    for node in nodes:
        if node.name not in place:
            clients.setdefault(talked.get(node.name), []).append(node.name)
    away = CLIENT_DISTANCE if len(nodes) <= MOST_LARGE else CLIENT_DISTANCE_LARGE_LAB
    for anchor, names in clients.items():
        middle = place.get(anchor or "", (WIDTH / 2, HEIGHT / 2))
        for number, name in enumerate(names):
            place[name] = _beside(middle, outward.get(anchor or ""), number, len(names), away)
    return place


def _broker_of_each(edges: Sequence[Edge], brokers: Collection[str]) -> dict[str, str]:
    """The first broker with which each other node exchanged messages."""
    broker_of: dict[str, str] = {}
    for edge in edges:
        for one, other in ((edge.one, edge.other), (edge.other, edge.one)):
            if other in brokers and one not in brokers:
                broker_of.setdefault(one, other)
    return broker_of


def _beside(
    anchor: tuple[float, float], outward: float | None, number: int, count: int, away: float
) -> tuple[float, float]:
    """The position of a client around its broker: outside of the ring, else all around the broker."""
    share = (number + 0.5) / count
    angle = 2 * math.pi * share if outward is None else outward + FAN * (share - 0.5)
    if count > 4:
        away *= 1 + 0.35 * (number % 2)
    return (
        _within(anchor[0] + away * math.cos(angle), WIDTH, MARGIN / 4),
        _within(anchor[1] + away * math.sin(angle), HEIGHT, MARGIN / 4),
    )


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
) -> Markup:
    """A line with the dashes of the client's link profile; solid between brokers."""
    ends = [nodes[edge.one], nodes[edge.other]]
    outer = next((node for node in ends if node.kind != "broker"), None)
    dash = DASHES[profiles.index(outer.profile) % len(DASHES)] if outer else ""
    return Markup(
        '<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke-dasharray="{}"/>'
    ).format("link" if outer else "link between", *place[edge.one], *place[edge.other], dash)


def _node(node: RunNode, at: tuple[float, float], count: int, brokers: int, above: bool) -> Markup:
    shape = SHAPES.get(node.kind, SHAPES["subscriber"])
    title = Markup("<title>{} ({}, {})</title>").format(node.name, node.kind, node.profile)
    labels = Markup("")
    if count <= MOST_LABELS or (node.kind == "broker" and brokers <= MOST_LABELS):
        labels = Markup('<text class="name" y="{}">{}</text>').format(
            -34 if above else 27, node.name
        )
    if count <= MOST_LABELS:
        labels += Markup('<text class="profile" y="{}">{}</text>').format(
            -19 if above else 42, node.profile
        )
    if count > MOST_LARGE:
        size = SMALL if count <= MOST_SMALL else SMALLEST
        shape = Markup('<g transform="scale({})">{}</g>').format(size, shape)
    return Markup('<g transform="translate({:.1f},{:.1f})">{}{}{}</g>').format(
        *at, title, shape, labels
    )
