"""In which order bytes leave on a link. Pure, like the overlays.

A new method is one module with a scheduler and an assembler, and one line here; or an entry point of another package
(docs/dev/add-a-delivery-method.md).
"""

from nodes.delivery import dmpq_pc, fifo, pq_pc, preemptive
from nodes.delivery.base import Delivery
from nodes.plugins import DELIVERIES, Registry

METHODS: Registry[Delivery] = Registry(
    DELIVERIES,
    {
        "fifo": Delivery(fifo.Fifo, fifo.Whole, fifo.needs),
        "pq-pc": Delivery(pq_pc.PqPc, pq_pc.WholeOnly, pq_pc.needs),
        "dmpq-pc": Delivery(dmpq_pc.DmpqPc, dmpq_pc.Joining, dmpq_pc.needs),
        "preemptive": Delivery(preemptive.Preemptive, preemptive.Sorting, preemptive.needs),
    },
)
