"""The drawing: above the lists of each level, below the way of the publication, hop by hop.

Nodes stand in key order from left to right. Of each level the lists are drawn that have at least two members, each in
a row of its own with the bits that its members share. A hop is an arc from sender to receiver, in a colour for each
number of hops; what goes the same way again hangs deeper.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from nodes.overlay.tbps.keys import Role
from testbed.graphs.example import DrawnPeer, Formed, Hop

LEFT, RIGHT, TOP = 130, 40, 46
COLUMN, ROW, LEVEL_GAP = 74, 34, 14
RADIUS = 13
ARC, FLAT, AGAIN = (
    0.2,
    12,
    9,
)  # an arc hangs by this part of its width and so far; each further one so much deeper
COLOURS = ("#b1182e", "#d2691e", "#c79a00", "#4b8f3c", "#17617c", "#5a4fa0", "#7d7d7d")
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #16202b; text-anchor: middle; dominant-baseline: central; }
.quiet { fill: #566372; text-anchor: start; }
.bits { font-family: ui-monospace, monospace; font-size: 11px; }
.list { stroke: #8d96a1; stroke-width: 1.5; }
.publisher { fill: #fdf2dc; stroke: #8a5a00; stroke-width: 1.5; }
.subscriber { fill: #e4f1f6; stroke: #17617c; stroke-width: 1.5; }
.hop { fill: none; stroke-width: 2; }
"""


@dataclass(frozen=True, slots=True)
class _List:
    """One list of one level, in its row."""

    level: int
    bits: str
    members: tuple[DrawnPeer, ...]
    y: float


def svg(formed: Formed) -> str:
    """The whole picture, on white."""
    rows = list(_rows(formed))
    bottom = rows[-1].y
    depths = _depths(formed)
    deepest = max(depths, default=0.0)
    width = LEFT + COLUMN * (len(formed.peers) - 1) + RIGHT + RADIUS
    height = bottom + RADIUS + 20 + deepest + 44
    parts = [part for row in rows for part in _row(row, formed)]
    for hop, depth in zip(formed.hops, depths, strict=True):
        parts.append(_arc(hop, formed.peers, bottom + RADIUS + 18, depth))
    parts += _legend(formed, height - 20)
    title = escape(_title(formed))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" role="img"'
        f' aria-label="{title}"><style>{STYLE}</style>{_arrows()}'
        f'<rect width="100%" height="100%" fill="#ffffff"/><text class="quiet" x="14" y="20">{title}</text>'
        f"{''.join(parts)}</svg>\n"
    )


def _title(formed: Formed) -> str:
    example = formed.example
    return (
        f"{example.method}, priority {example.priority}: {len(formed.hops)} messages, "
        f"{len(formed.reached)} of {example.subscribers} subscribers reached"
    )


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


def _rows(formed: Formed) -> Iterator[_List]:
    y = float(TOP + ROW / 2)
    for level in reversed(range(formed.levels)):
        for bits, members in sorted(lists(formed.peers, level), reverse=True):
            yield _List(level, bits, members, y)
            y += ROW
        y += LEVEL_GAP


def _row(row: _List, formed: Formed) -> Iterator[str]:
    place = _places(formed.peers)
    label = f"level {row.level}" + (f", {row.bits}…" if row.bits else "")
    yield f'<text class="quiet" x="14" y="{row.y}">{label}</text>'
    first, last = (place[row.members[end].number] for end in (0, -1))
    yield f'<line class="list" x1="{first}" x2="{last}" y1="{row.y}" y2="{row.y}"/>'
    for peer in row.members:
        x, kind = place[peer.number], peer.role.name.lower()
        yield f'<circle class="{kind}" cx="{x}" cy="{row.y}" r="{RADIUS}"/>'
        yield f'<text x="{x}" y="{row.y}">{name(peer)}</text>'
        if row.level == 0:
            bits = peer.bits(max(formed.levels - 1, 1))
            yield f'<text class="bits" x="{x}" y="{row.y + RADIUS + 9}">{bits}</text>'


def name(peer: DrawnPeer) -> str:
    """p1, s4: role and number."""
    return ("p" if peer.role is Role.PUBLISHER else "s") + str(peer.number)


def _places(peers: Sequence[DrawnPeer]) -> dict[int, int]:
    return {peer.number: LEFT + COLUMN * column for column, peer in enumerate(peers)}


def _depths(formed: Formed) -> list[float]:
    """How deep each hop's arc hangs."""
    place = _places(formed.peers)
    same: Counter[tuple[int, int]] = Counter()
    depths = []
    for hop in formed.hops:
        ends = min(hop.src, hop.dst), max(hop.src, hop.dst)
        depths.append(FLAT + ARC * abs(place[hop.dst] - place[hop.src]) + AGAIN * same[ends])
        same[ends] += 1
    return depths


def _arc(hop: Hop, peers: Sequence[DrawnPeer], y: float, depth: float) -> str:
    place = _places(peers)
    begin, end = place[hop.src], place[hop.dst]
    # A cubic curve hangs three quarters as deep as its two handles.
    handle = y + depth / 0.75
    colour = min(hop.number, len(COLOURS)) - 1
    return (
        f'<path class="hop" stroke="{COLOURS[colour]}" marker-end="url(#arrow{colour})" '
        f'd="M{begin},{y} C{begin},{handle:.0f} {end},{handle:.0f} {end},{y + 4}"/>'
    )


def _arrows() -> str:
    heads = (
        f'<marker id="arrow{number}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="6" markerHeight="6" '
        f'orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{colour}"/></marker>'
        for number, colour in enumerate(COLOURS)
    )
    return f"<defs>{''.join(heads)}</defs>"


def _legend(formed: Formed, y: float) -> list[str]:
    parts, x = [], 14
    for number in sorted({min(hop.number, len(COLOURS)) for hop in formed.hops}):
        words = f"hop {number}" + (" and later" if number == len(COLOURS) else "")
        parts.append(
            f'<rect x="{x}" y="{y - 2}" width="18" height="4" fill="{COLOURS[number - 1]}"/>'
            f'<text class="quiet" x="{x + 24}" y="{y}">{words}</text>'
        )
        x += 80
    return parts
