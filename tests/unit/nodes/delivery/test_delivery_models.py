"""pq-pc, dmpq-pc and preemptive under any interleaving: whole, once, in order, the most urgent first."""

from typing import ClassVar

from nodes.delivery.base import Chunk
from nodes.protocol.labels import DMPQ_LABELS, DmpqLabel, form_and_level
from support.nodes.delivery_model import STEPS, DeliveryModel

URGENT_LETTERS = {DmpqLabel.URGENT, DmpqLabel.URGENT_PIECE, DmpqLabel.URGENT_LAST}
SHARE_EVERY = 4


class WholeMessagesModel(DeliveryModel):
    """pq-pc."""

    method = "pq-pc"
    parameters: ClassVar = {}

    def is_urgent(self, chunk: Chunk) -> bool:
        return chunk.data in self.waiting[5] or chunk.data in self.control


class AnsweredModel(WholeMessagesModel):
    """pq-pc with answers by UDP, of which some are lost."""

    parameters: ClassVar = {"ack": "udp", "ack_timeout_s": 0.2}


class TwoClassesModel(DeliveryModel):
    """pq-pc with the two classes of the thesis."""

    method = "pq-pc"
    parameters: ClassVar = {"urgent_from": 4}

    def is_urgent(self, chunk: Chunk) -> bool:
        urgent = (*self.waiting[5], *self.waiting[4], *self.upkeep, *self.control)
        return chunk.data in urgent


class DividedModel(DeliveryModel):
    """dmpq-pc."""

    method = "dmpq-pc"
    parameters: ClassVar = {}

    def is_urgent(self, chunk: Chunk) -> bool:
        return chunk.data[0] in URGENT_LETTERS


class DividedInBitsModel(DeliveryModel):
    """dmpq-pc with labels in the reserved bits and answers by UDP."""

    method = "dmpq-pc"
    parameters: ClassVar = {"label": "opcode", "dv": 200, "ack": "udp", "urgent_from": 3}

    def is_urgent(self, chunk: Chunk) -> bool:
        return DMPQ_LABELS[chunk.bits] in URGENT_LETTERS


class PreemptiveModel(DeliveryModel):
    """preemptive."""

    method = "preemptive"
    parameters: ClassVar = {"share_every": SHARE_EVERY}

    def __init__(self) -> None:
        super().__init__()
        self.emergencies = SHARE_EVERY  # pieces since one of a lower level went before them

    def is_urgent(self, chunk: Chunk) -> bool:
        urgent = form_and_level(chunk.data[0])[1] == 5
        if urgent and chunk.data[1:] not in self.control:
            self.emergencies += 1
        return urgent

    def may_go_before(self, pieces: int) -> bool:
        allowed, self.emergencies = self.emergencies >= SHARE_EVERY - 1, 0
        return pieces == 1 or allowed


class StrictModel(DeliveryModel):
    """preemptive without shares, with pieces of one length."""

    method = "preemptive"
    parameters: ClassVar = {"share_every": 0, "dv": 100}

    def is_urgent(self, chunk: Chunk) -> bool:
        return form_and_level(chunk.data[0])[1] == 5


TestPqPc = WholeMessagesModel.TestCase
TestPqPc.settings = STEPS
TestPqPcAnswered = AnsweredModel.TestCase
TestPqPcAnswered.settings = STEPS
TestPqPcTwoClasses = TwoClassesModel.TestCase
TestPqPcTwoClasses.settings = STEPS
TestDmpqPc = DividedModel.TestCase
TestDmpqPc.settings = STEPS
TestDmpqPcInBits = DividedInBitsModel.TestCase
TestDmpqPcInBits.settings = STEPS
TestPreemptive = PreemptiveModel.TestCase
TestPreemptive.settings = STEPS
TestPreemptiveStrict = StrictModel.TestCase
TestPreemptiveStrict.settings = STEPS
