"""Who gets a message. Pure cores: no socket, no event loop, no clock, no global random.

A new overlay is one class like `mesh.Mesh` and one line here; a new topic method between brokers is one line in `tbps`.
"""

from nodes.overlay.base import OverlayFactory
from nodes.overlay.mesh import mesh_of
from nodes.overlay.star import star
from nodes.overlay.tbps import TOPIC_METHODS

METHODS: dict[str, OverlayFactory] = {
    "star": star,
    **{method: mesh_of(method, make_node) for method, make_node in TOPIC_METHODS.items()},
}
