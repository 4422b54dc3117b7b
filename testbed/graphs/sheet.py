"""The sheet that every drawing stands on: white, with a title, in the same letters and colours."""

from collections.abc import Iterable
from html import escape

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #16202b; text-anchor: middle; dominant-baseline: central; }
.quiet { fill: #566372; text-anchor: start; }
.small { font-size: 11px; }
"""


def sheet(width: float, height: float, title: str, style: str, parts: Iterable[str]) -> str:
    """The whole SVG."""
    told = escape(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
        f' aria-label="{told}"><style>{STYLE.rstrip()}{style}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/><text class="quiet" x="14" y="20">{told}</text>'
        f"{''.join(parts)}</svg>\n"
    )
