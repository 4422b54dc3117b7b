"""The ways of sending that are compared: the thesis' own, and ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodes.delivery import preemptive
from nodes.delivery.preemptive import PIECE_S

QUEUE_BYTES = 12_000_000  # all messages of an experiment fit: nothing is dropped, as in the thesis
URGENT_LEVEL, STANDARD_LEVEL = 5, 1


@dataclass(frozen=True, slots=True)
class Series:
    """One way of sending, at all rates."""

    key: str
    title: str
    method: str
    parameters: tuple[tuple[str, Any], ...] = ()
    dv: int | None = None
    label_bytes: int = 0

    def delivery(self, scale: int) -> Mapping[str, Any]:
        """As a topology file has it. Where time is scaled, so is the longest time of one piece of ours."""
        paced = {"piece_s": PIECE_S / scale} if self.method == preemptive.METHOD else {}
        room = {"limit_bytes": QUEUE_BYTES}
        return {"method": self.method, **dict(self.parameters), **paced, **room}


def _divided(dv: int, ack: str = "udp") -> Series:
    by_kernel = ack == "kernel"
    return Series(
        f"dmpq-{dv}{'-kernel' if by_kernel else ''}",
        f"DMPQ-PC, DV {dv}{', kernel' if by_kernel else ''}",
        "dmpq-pc",
        (("dv", dv), ("ack", ack), ("label", "byte"), ("urgent_from", URGENT_LEVEL)),
        dv,
        1,
    )


DEFAULT = Series("default", "default", "fifo")
PQ_PC = Series("pq-pc", "PQ-PC", "pq-pc", (("ack", "udp"), ("urgent_from", URGENT_LEVEL)))
DMPQ_10000, DMPQ_5000, DMPQ_1443, DMPQ_1000 = (_divided(dv) for dv in (10_000, 5_000, 1_443, 1_000))
DMPQ_1443_KERNEL = _divided(1_443, "kernel")
PREEMPTIVE = Series("preemptive", "preemptive (ours)", preemptive.METHOD)

THESIS = (DEFAULT, PQ_PC, DMPQ_10000, DMPQ_5000, DMPQ_1443, DMPQ_1000)
ALL = (*THESIS, DMPQ_1443_KERNEL, PREEMPTIVE)
FEW = (DEFAULT, PQ_PC, DMPQ_10000, DMPQ_1443, DMPQ_1000, PREEMPTIVE)
