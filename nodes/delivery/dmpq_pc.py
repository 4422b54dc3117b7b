"""DMPQ-PC (Lee 2016, section 3.2): PQ-PC, and a message longer than `dv` bytes is divided into pieces of `dv`.

An urgent message (level `urgent_from` and above) comes between two pieces of a standard one. The labels rebuild one
message of each class at a time (`nodes.protocol.labels`), so

- a standard message that has begun is finished before another standard one begins;
- an urgent message that has begun is finished before another divided urgent one begins; a more urgent one that needs
  no dividing may come between its pieces.

Otherwise the highest level goes first, in order within a level. Control messages go first of all, undivided.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nodes.delivery.base import Chunk, Needs
from nodes.delivery.pacing import LinkModel, Paced, Piece
from nodes.delivery.pq_pc import first_urgent, link_model_of
from nodes.delivery.queues import LEVELS, Levels, Waiting, limit_bytes
from nodes.parameters import ParameterError, check_known, one_of
from nodes.protocol.labels import BITS, DMPQ_LABELS, DmpqLabel
from nodes.protocol.wire import MAX_MESSAGE_BYTES

# A divided message on the receiving side, joined piece by piece, never longer than a message may be.


class Rebuilding:
    """The pieces of one stream; at most one message of it is open."""

    def __init__(self, stream: str) -> None:
        self._stream = stream  # for sentences: "an urgent message", "a message of level 3"
        self._stored = bytearray()

    @property
    def open(self) -> bool:
        return bool(self._stored)

    def add(self, piece: bytes) -> None:
        """A piece with more to come."""
        if not piece:
            raise ValueError(f"an empty piece of {self._stream}")
        if len(self._stored) + len(piece) > MAX_MESSAGE_BYTES:
            raise ValueError(
                f"the pieces of {self._stream} have more than {MAX_MESSAGE_BYTES} bytes together"
            )
        self._stored += piece

    def finish(self, piece: bytes) -> bytes:
        """The last piece; the whole message."""
        if not self.open:
            raise ValueError(f"the last piece of {self._stream} came without a first one")
        self.add(piece)
        whole = bytes(self._stored)
        self._stored = bytearray()
        return whole

    def refuse_between(self) -> None:
        """ValueError if a message is open, because another one of the stream came whole."""
        if self.open:
            raise ValueError(f"a whole message came between the pieces of {self._stream}")


URGENT_FROM = 4
LABELS = ("byte", "opcode")
NAMES = ("limit_bytes", "dv", "label", "urgent_from", "ack", "ack_timeout_s")


def length_of_pieces(method: str, parameters: Mapping[str, Any]) -> int | None:
    """The parameter `dv`; None: "auto"."""
    dv = parameters.get("dv", "auto")
    if dv == "auto":
        return None
    if not isinstance(dv, int) or isinstance(dv, bool) or not 1 <= dv <= MAX_MESSAGE_BYTES - 1:
        raise ParameterError(
            "dv", f"{method}'s dv is {dv!r}; it takes auto or a whole number of bytes, 1 or more"
        )
    return dv


class Divided:
    """Which piece is next, and its label."""

    def __init__(self, dv: int | None, in_bits: bool, urgent_from: int) -> None:
        self._asked = dv
        self._dv = dv or 0
        self._in_bits = in_bits
        self._urgent = tuple(level for level in LEVELS if level >= urgent_from)
        self._standard = tuple(level for level in LEVELS if level < urgent_from)
        self._open: dict[bool, Waiting | None] = {True: None, False: None}  # urgent or not

    def on_up(self, packet_payload: int) -> None:
        self._dv = self._asked or max(packet_payload - (not self._in_bits), 1)
        self._open = {True: None, False: None}

    def at_once(self, levels: Levels) -> bool:
        return False

    def cut(self, levels: Levels) -> Piece | None:
        if (control := levels.control()) is not None:
            return Piece(self._chunk(DmpqLabel.URGENT, control.data), (control,))
        if (message := self._next_urgent(levels)) is not None:
            return self._piece(message, urgent=True)
        if (message := self._next_standard(levels)) is not None:
            return self._piece(message, urgent=False)
        return None

    def _next_urgent(self, levels: Levels) -> Waiting | None:
        begun = self._open[True]
        for level in self._urgent:
            head = levels.head(level)
            if head is not None and (begun in (None, head) or len(head.data) <= self._dv):
                return head
        return None

    def _next_standard(self, levels: Levels) -> Waiting | None:
        heads = (levels.head(level) for level in self._standard)
        return self._open[False] or next((head for head in heads if head is not None), None)

    def _piece(self, message: Waiting, urgent: bool) -> Piece:
        if len(message.data) <= self._dv:
            return Piece(
                self._chunk(DmpqLabel.URGENT if urgent else DmpqLabel.WHOLE, message.data),
                (message,),
            )
        upto = min(message.sent + self._dv, len(message.data))
        if upto < len(message.data):
            label = DmpqLabel.URGENT_PIECE if urgent else DmpqLabel.PIECE
            self._open[urgent] = message
        else:
            label = DmpqLabel.URGENT_LAST if urgent else DmpqLabel.LAST
            self._open[urgent] = None
        return Piece(self._chunk(label, message.data[message.sent : upto]), (message,), upto)

    def _chunk(self, label: DmpqLabel, data: bytes) -> Chunk:
        return Chunk(data, BITS[label]) if self._in_bits else Chunk(bytes((label,)) + data)


class DmpqPc(Paced):
    """The queue."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        chosen = _read(parameters)
        cutter = Divided(chosen.dv, chosen.in_bits, chosen.urgent_from)
        super().__init__(chosen.limit, chosen.link_model, cutter)


class Joining:
    """Hands on A and B at once, stores C and c, and joins them with D and d.

    Refused: no label or an unknown one, an empty piece, a last piece without a first, B between C and D, a message
    longer than a message may be.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._in_bits = _read(parameters).in_bits
        self._urgent = Rebuilding("an urgent message")
        self._standard = Rebuilding("a standard message")

    def on_chunk(self, chunk: Chunk) -> list[bytes]:
        label, data = self._split(chunk)
        match label:
            case DmpqLabel.URGENT:
                return [data]
            case DmpqLabel.WHOLE:
                self._standard.refuse_between()
                return [data]
            case DmpqLabel.PIECE:
                self._standard.add(data)
            case DmpqLabel.URGENT_PIECE:
                self._urgent.add(data)
            case DmpqLabel.LAST:
                return [self._standard.finish(data)]
            case DmpqLabel.URGENT_LAST:
                return [self._urgent.finish(data)]
        return []

    def _split(self, chunk: Chunk) -> tuple[DmpqLabel, bytes]:
        if self._in_bits:
            if chunk.bits not in DMPQ_LABELS:
                raise ValueError(f"no label of dmpq-pc in the reserved bits: {chunk.bits:03b}")
            return DMPQ_LABELS[chunk.bits], chunk.data
        if not chunk.data:
            raise ValueError("an empty chunk, without a label")
        try:
            return DmpqLabel(chunk.data[0]), chunk.data[1:]
        except ValueError:
            raise ValueError(f"no label of dmpq-pc: {chunk.data[0]:#04x}") from None


def needs(parameters: Mapping[str, Any]) -> Needs:
    """Acknowledgements by UDP, or TCP's without delay; the reserved bits, if the labels are there."""
    in_bits = _read(parameters).in_bits
    udp_acks = parameters.get("ack") == "udp"
    return Needs(udp_acks=udp_acks, bits=in_bits, prompt_acks=not udp_acks, link_model=True)


class _Chosen(NamedTuple):
    limit: int
    link_model: LinkModel
    dv: int | None
    in_bits: bool
    urgent_from: int


def _read(parameters: Mapping[str, Any]) -> _Chosen:
    check_known("dmpq-pc", parameters, NAMES)
    return _Chosen(
        limit=limit_bytes("dmpq-pc", parameters),
        link_model=link_model_of("dmpq-pc", parameters),
        dv=length_of_pieces("dmpq-pc", parameters),
        in_bits=one_of("dmpq-pc", parameters, "label", LABELS) == "opcode",
        urgent_from=first_urgent("dmpq-pc", parameters, URGENT_FROM),
    )
