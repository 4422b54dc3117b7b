"""Who gets a message. Pure cores: no socket, no event loop, no clock, no global random.

A new overlay is one module with a class like `star.Star` and one line here.
"""

from nodes.overlay.base import OverlayFactory
from nodes.overlay.star import Star

METHODS: dict[str, OverlayFactory] = {
    "star": Star,
}
