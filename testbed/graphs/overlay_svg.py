"""An overlay drawn: above the lists of each level, below the way of the publication, hop by hop.

Nodes stand in key order from left to right. Of each level the lists are drawn that have at least two members, each in
a row of its own with the bits that its members share. A hop is an arc from sender to receiver, in a colour for each
number of hops; what goes the same way again hangs deeper. Of a map, level 0 is drawn as the ring it is, with the share
of each broker and the points at which the publication is matched; ways to these are dashed, those to subscribers not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from testbed.graphs.describe import role, short, title
from testbed.graphs.simulate import DrawnPeer, Hop, SimulatedOverlay
from testbed.graphs.topology_tree import sheet

LEFT, RIGHT, TOP = 130, 40, 46
COLUMN, ROW, LEVEL_GAP = 74, 34, 14
LETTER, NAMES = 6.5, 15  # width of a letter of a name, and height of the row of names
RADIUS = 13
STUB = 26  # of the ring, beyond its ends
DASHED = "dashed: to the owner of the place and of the topic's home, which match it; solid: to subscribers"
ARC, FLAT, AGAIN = (
    0.2,
    12,
    9,
)  # an arc hangs by this part of its width and so far; each further one so much deeper
COLOURS = ("#b1182e", "#d2691e", "#c79a00", "#4b8f3c", "#17617c", "#5a4fa0", "#7d7d7d")
SOUGHT = ("place", "home")
STYLE = """
.bits { font-family: ui-monospace, monospace; font-size: 11px; }
.list { stroke: #8d96a1; stroke-width: 1.5; }
.publisher { fill: #fdf2dc; stroke: #8a5a00; stroke-width: 1.5; }
.subscriber { fill: #e4f1f6; stroke: #17617c; stroke-width: 1.5; }
.both { fill: #e4f1f6; stroke: #8a5a00; stroke-width: 2.5; }
.neither { fill: #f1f3f5; stroke: #8d96a1; stroke-width: 1.5; }
.hop { fill: none; stroke-width: 2; }
"""
OF_MAPS = f"""{STYLE.rstrip()}
.seek {{ stroke-dasharray: 5 3; }}
.round {{ stroke: #8d96a1; stroke-width: 1.5; stroke-dasharray: 2 3; }}
.match {{ fill: #b1182e; font-weight: 600; }}
"""


@dataclass(frozen=True, slots=True)
class _List:
    """One list of one level, in its row."""

    level: int
    bits: str
    members: tuple[DrawnPeer, ...]
    y: float


def svg(simulated: SimulatedOverlay) -> str:
    """The whole picture."""
    rows = list(_rows(simulated))
    places = _places(simulated)
    bottom = rows[-1].y + RADIUS + 18 + NAMES * _rows_below(simulated)
    depths = _depths(simulated, places)
    deepest = max(depths, default=0.0)
    width = max(places.values()) + RIGHT + RADIUS
    height = bottom + 2 + deepest + 44
    parts = [_arrows(), *(part for row in rows for part in _row(row, simulated, places))]
    for hop, depth in zip(simulated.hops, depths, strict=True):
        parts.append(_arc(hop, places, bottom, depth))
    parts += _legend(simulated, height - 20)
    heading = title(simulated)
    longest = 28 + LETTER * len(heading)
    if simulated.areas:
        parts.append(f'<text class="quiet" x="14" y="{height}">{DASHED}</text>')
        height, longest = height + 22, max(longest, 28 + LETTER * len(DASHED))
    return sheet(max(width, longest), height, heading, OF_MAPS if simulated.areas else STYLE, parts)


def lists(peers: Sequence[DrawnPeer], level: int) -> list[tuple[str, tuple[DrawnPeer, ...]]]:
    """The lists of a level with the bits that their members share, found by following the links."""
    by_number = {peer.number: peer for peer in peers}
    pointed = {peer.right[level] for peer in peers if len(peer.right) > level}
    found = []
    for peer in peers:
        if len(peer.right) <= level or peer.number in pointed:
            continue
        members = [peer]
        while (onward := members[-1].right[level]) is not None:
            members.append(by_number[onward])
        found.append((peer.bits(level), tuple(members)))
    return found


def _rows(simulated: SimulatedOverlay) -> Iterator[_List]:
    y = float(TOP + ROW / 2)
    for level in reversed(range(1, simulated.levels)):
        for bits, members in sorted(lists(simulated.peers, level), reverse=True):
            yield _List(level, bits, members, y)
            y += ROW
        y += LEVEL_GAP
    yield _List(0, "", simulated.peers, y)


def _row(row: _List, simulated: SimulatedOverlay, places: dict[int, float]) -> Iterator[str]:
    label = f"level {row.level}" + (f", {row.bits}…" if row.bits else "")
    yield f'<text class="quiet" x="14" y="{row.y}">{label}</text>'
    first, last = (places[row.members[end].number] for end in (0, -1))
    yield f'<line class="list" x1="{first}" x2="{last}" y1="{row.y}" y2="{row.y}"/>'
    if simulated.areas and row.level == 0:
        for begin, end in ((first - STUB, first), (last, last + STUB)):
            yield f'<line class="round" x1="{begin}" x2="{end}" y1="{row.y}" y2="{row.y}"/>'
    for peer in row.members:
        x = places[peer.number]
        yield f'<circle class="{role(peer)}" cx="{x}" cy="{row.y}" r="{RADIUS}"/>'
        yield f'<text x="{x}" y="{row.y}">{short(peer)}</text>'
        if row.level == 0:
            bits = peer.bits(max(simulated.levels - 1, 1))
            yield f'<text class="bits" x="{x}" y="{row.y + RADIUS + 9}">{bits}</text>'
            for place, (kind, words) in enumerate(_below(simulated, peer.number), 1):
                y = row.y + RADIUS + 9 + NAMES * place
                yield f'<text class="small{kind}" x="{x}" y="{y}">{escape(words)}</text>'


def _below(simulated: SimulatedOverlay, number: int) -> list[tuple[str, str]]:
    """The text below a node: CSS class and text of each line."""
    lines = []
    if simulated.scenario.names:
        lines.append(("", simulated.scenario.names[number]))
    if area := simulated.areas.get(number):
        lines.append(("", f"{100 * area.share:.1f} %"))
        lines += [(" match", " and ".join(area.matches))] if area.matches else []
    return lines


def _rows_below(simulated: SimulatedOverlay) -> int:
    return max(len(_below(simulated, peer.number)) for peer in simulated.peers)


def _places(simulated: SimulatedOverlay) -> dict[int, float]:
    """Of each node, from the left; columns are as wide as the longest name."""
    longest = max((len(name) for name in simulated.scenario.names.values()), default=0)
    column = max(COLUMN, round(LETTER * longest) + 8)
    return {peer.number: LEFT + column * place for place, peer in enumerate(simulated.peers)}


def _depths(simulated: SimulatedOverlay, places: dict[int, float]) -> list[float]:
    """How deep each hop's arc hangs."""
    same: Counter[tuple[int, int]] = Counter()
    depths = []
    for hop in simulated.hops:
        ends = min(hop.src, hop.dst), max(hop.src, hop.dst)
        depths.append(FLAT + ARC * abs(places[hop.dst] - places[hop.src]) + AGAIN * same[ends])
        same[ends] += 1
    return depths


def _arc(hop: Hop, places: dict[int, float], y: float, depth: float) -> str:
    begin, end = places[hop.src], places[hop.dst]
    # A cubic curve hangs three quarters as deep as its two handles.
    handle = y + depth / 0.75
    colour = min(hop.number, len(COLOURS)) - 1
    kind = "hop seek" if hop.toward in SOUGHT else "hop"
    return (
        f'<path class="{kind}" stroke="{COLOURS[colour]}" marker-end="url(#arrow{colour})" '
        f'd="M{begin},{y} C{begin},{handle:.0f} {end},{handle:.0f} {end},{y + 4}"/>'
    )


def _arrows() -> str:
    heads = (
        f'<marker id="arrow{number}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6" '
        f'orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>'
        for number, colour in enumerate(COLOURS)
    )
    return f"<defs>{''.join(heads)}</defs>"


def _legend(simulated: SimulatedOverlay, y: float) -> list[str]:
    parts, x = [], 14
    for number in sorted({min(hop.number, len(COLOURS)) for hop in simulated.hops}):
        words = f"hop {number}" + (" and later" if number == len(COLOURS) else "")
        parts.append(
            f'<rect x="{x}" y="{y - 2}" width="18" height="4" fill="{COLOURS[number - 1]}"/>'
            f'<text class="quiet" x="{x + 24}" y="{y}">{words}</text>'
        )
        x += 80
    return parts
