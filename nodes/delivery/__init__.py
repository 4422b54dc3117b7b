"""In which order bytes leave on a link. Pure, like the overlays.

A new method is one module with a scheduler and an assembler, and one line here.
"""

from nodes.delivery.base import Delivery
from nodes.delivery.fifo import Fifo, Whole
from nodes.delivery.fifo import needs as fifo_needs

METHODS: dict[str, Delivery] = {
    "fifo": Delivery(Fifo, Whole, fifo_needs),
}
