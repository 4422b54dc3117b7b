"""Ours: five levels, and a more urgent message interrupts any other between two pieces.

- Messages of different levels may be under way at the same time, each level in its own order.
- A piece takes at most `piece_s` at the rate to which the link has kept, but has at least `min_piece` bytes. It stays
  within one packet, and has several only if they take no more than a tenth of `piece_s` together: then it is for the
  processor's sake. A message is cut into equal pieces where they are shorter than a packet. Level 5 fills packets
  always, since nothing may interrupt it. `dv` sets the length instead.
- Small messages of one level below 5 that wait together leave together, as far as one packet and `piece_s` go.
- Control messages go first of all, undivided; upkeep goes with level 4.
- Control messages and level 5 do not wait until the link is free: nothing could come before them. But no more than
  TCP's first window is under way then, so that a long message of level 5 leaves the others their share.

No level starves. While several levels wait, one of `share_every` pieces goes to the level that was passed over
longest. So a level that waits gets at least one of any 4 x `share_every` + 1 pieces (control messages apart): each of
the four others can have been passed over longer, and has its turn once before. And no more than one of `share_every`
pieces is lost to the most urgent. With 0 the order is strict.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nodes.delivery.base import Chunk, Needs
from nodes.delivery.dmpq_pc import Rebuilding, length_of_pieces
from nodes.delivery.link_model import FRAME_BYTES, PACKET_BYTES, KernelLinkModel
from nodes.delivery.pacing import Paced, Piece
from nodes.delivery.queues import LEVELS, Levels, Waiting, limit_bytes
from nodes.parameters import ParameterError, check_known, seconds, whole_number
from nodes.protocol.labels import LENGTH_BYTES, Form, form_and_level, levelled
from nodes.protocol.wire import HIGHEST_PRIORITY

METHOD = "preemptive"
NAMES = ("limit_bytes", "piece_s", "min_piece", "dv", "share_every")
PIECE_S = 0.1
MANY_PACKETS = 10  # a piece of several packets takes this part of `piece_s`
MIN_PIECE = 256
SHARE_EVERY = 16
LONGEST_CHUNK = 65_535  # a longer one has a longer WebSocket header
LABEL_BYTES = 1


class Turns:
    """Which level is next."""

    def __init__(self, share_every: int) -> None:
        self._share_every = share_every
        self.begin()

    def begin(self) -> None:
        self._since_share = 0
        self._passed_over = dict.fromkeys(LEVELS, 0)

    def next_level(self, waiting: list[int]) -> int:
        """One of the levels that wait, given with the most urgent first."""
        level = self.foreseen(waiting)
        shared = len(waiting) == 1 or self._is_shared(waiting)
        self._since_share = 0 if shared else self._since_share + 1
        for other in LEVELS:
            passed = other in waiting and other != level
            self._passed_over[other] = self._passed_over[other] + 1 if passed else 0
        return level

    def foreseen(self, waiting: list[int]) -> int:
        """The level that would be next."""
        if self._is_shared(waiting):
            return max(waiting, key=lambda one: self._passed_over[one])
        return waiting[0]

    def _is_shared(self, waiting: list[int]) -> bool:
        due = self._share_every and self._since_share >= self._share_every - 1
        return len(waiting) > 1 and bool(due)


class Lengths:
    """How long a piece may be."""

    def __init__(self, dv: int | None, piece_s: float, min_piece: int) -> None:
        self._dv = dv
        self._piece_s = piece_s
        self._min_piece = min_piece
        self._packet_payload = 0

    def on_up(self, packet_payload: int) -> None:
        self._packet_payload = packet_payload

    def most(self, rate: float | None) -> int:
        """Bytes of a message in one chunk, without the label."""
        if self._dv is not None:
            return self._dv
        one_packet = max(self._packet_payload - LABEL_BYTES, 1)
        if rate is None:
            return one_packet
        packet = self._packet_payload + FRAME_BYTES
        on_the_line = rate * self._piece_s
        packets = int(on_the_line / MANY_PACKETS // (packet + PACKET_BYTES))
        if packets > 1:
            packets = max(min(packets, LONGEST_CHUNK // packet), 1)
            return packets * packet - FRAME_BYTES - LABEL_BYTES
        in_time = int(on_the_line) - PACKET_BYTES - FRAME_BYTES - LABEL_BYTES
        return min(max(in_time, self._min_piece), one_packet)

    def most_urgent(self, most: int) -> int:
        """The same for an emergency: nothing would come between shorter pieces."""
        return most if self._dv is not None else max(most, self._packet_payload - LABEL_BYTES)

    def next(self, left: int, most: int) -> int:
        """Bytes of the next piece of a message that has so many left."""
        if self._dv is not None or most > self._packet_payload:
            return min(left, most)
        pieces = -(-left // most)
        return -(-left // pieces)

    def together(self, most: int) -> int:
        """Bytes of a chunk of several messages, without the label."""
        return min(most, max(self._packet_payload - LABEL_BYTES, 1))


class Interrupting:
    """Which piece is next, and its label."""

    def __init__(self, link_model: KernelLinkModel, lengths: Lengths, turns: Turns) -> None:
        self._link_model = link_model
        self._lengths = lengths
        self._turns = turns

    def on_up(self, packet_payload: int) -> None:
        self._lengths.on_up(packet_payload)
        self._turns.begin()

    def at_once(self, levels: Levels) -> bool:
        """Control messages and emergencies are held back for nobody, as far as TCP itself would send on trust."""
        if not self._link_model.within_first_window:
            return False
        waiting = _waiting(levels)
        emergency = bool(waiting) and self._turns.foreseen(waiting) == HIGHEST_PRIORITY
        return emergency or levels.control() is not None

    def cut(self, levels: Levels) -> Piece | None:
        if (control := levels.control()) is not None:
            return Piece(_chunk(Form.WHOLE, HIGHEST_PRIORITY, control.data), (control,))
        waiting = _waiting(levels)
        if not waiting:
            return None
        level = self._turns.next_level(waiting)
        most = self._lengths.most(self._link_model.sure_rate)
        if level == HIGHEST_PRIORITY:
            most = self._lengths.most_urgent(most)
        together = self._together(levels, level, self._lengths.together(most))
        if len(together) > 1:
            parts = (
                len(message.data).to_bytes(LENGTH_BYTES) + message.data for message in together
            )
            return Piece(_chunk(Form.SEVERAL, level, b"".join(parts)), tuple(together))
        message = levels.head(level)
        assert message is not None
        return self._piece(message, most)

    def _piece(self, message: Waiting, most: int) -> Piece:
        if message.sent == 0 and len(message.data) <= most:
            return Piece(_chunk(Form.WHOLE, message.level, message.data), (message,))
        upto = message.sent + self._lengths.next(message.left, most)
        form = Form.LAST if upto == len(message.data) else Form.PIECE
        data = message.data[message.sent : upto]
        return Piece(_chunk(form, message.level, data), (message,), upto)

    @staticmethod
    def _together(levels: Levels, level: int, most: int) -> list[Waiting]:
        """The messages of the level that can leave in one chunk."""
        fitting: list[Waiting] = []
        if level == HIGHEST_PRIORITY:
            return fitting
        for message in levels.following(level):
            most -= LENGTH_BYTES + len(message.data)
            if most < 0 or message.sent > 0 or not message.data:
                break
            fitting.append(message)
        return fitting


def _waiting(levels: Levels) -> list[int]:
    return [level for level in LEVELS if levels.head(level) is not None]


def _chunk(form: Form, level: int, data: bytes) -> Chunk:
    return Chunk(bytes((levelled(form, level),)) + data)


class Preemptive(Paced):
    """The queue."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        chosen = _read(parameters)
        link_model = KernelLinkModel()
        super().__init__(
            chosen.limit, link_model, Interrupting(link_model, chosen.lengths, chosen.turns)
        )


class Sorting:
    """Rebuilds one message of each level at a time.

    Refused: no label or an unknown one, an empty piece, a last piece without a first, a message longer than a message
    may be, several messages of level 5 or with wrong lengths; and a whole message between the pieces of another one of
    its level, except at level 5: control messages come so.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        _read(parameters)
        self._levels = {level: Rebuilding(f"a message of level {level}") for level in LEVELS}

    def on_chunk(self, chunk: Chunk) -> list[bytes]:
        if not chunk.data:
            raise ValueError("an empty chunk, without a label")
        form, level = form_and_level(chunk.data[0])
        data, rebuilding = chunk.data[1:], self._levels[level]
        if form is Form.PIECE:
            rebuilding.add(data)
            return []
        if form is Form.LAST:
            return [rebuilding.finish(data)]
        if level < HIGHEST_PRIORITY:
            rebuilding.refuse_between()
        elif form is Form.SEVERAL:
            raise ValueError("several messages of level 5 in one chunk")
        return [data] if form is Form.WHOLE else _several(data)


def _several(data: bytes) -> list[bytes]:
    messages = []
    while data:
        length = int.from_bytes(data[:LENGTH_BYTES])
        message = data[LENGTH_BYTES : LENGTH_BYTES + length]
        if len(data) < LENGTH_BYTES or len(message) < length or not message:
            raise ValueError("the lengths of several messages in one chunk are wrong")
        messages.append(message)
        data = data[LENGTH_BYTES + length :]
    if not messages:
        raise ValueError("a chunk of several messages without any")
    return messages


def needs(parameters: Mapping[str, Any]) -> Needs:
    """Acknowledgements without delay."""
    _read(parameters)
    return Needs(prompt_acks=True, link_model=True)


class _Chosen(NamedTuple):
    limit: int
    lengths: Lengths
    turns: Turns


def _read(parameters: Mapping[str, Any]) -> _Chosen:
    check_known(METHOD, parameters, NAMES)
    return _Chosen(
        limit=limit_bytes(METHOD, parameters),
        lengths=Lengths(
            length_of_pieces(METHOD, parameters),
            seconds(METHOD, parameters, "piece_s", PIECE_S, most=60),
            whole_number(METHOD, parameters, "min_piece", MIN_PIECE, least=1, most=LONGEST_CHUNK),
        ),
        turns=Turns(_share_every(parameters)),
    )


def _share_every(parameters: Mapping[str, Any]) -> int:
    share_every = whole_number(METHOD, parameters, "share_every", SHARE_EVERY, least=0)
    if share_every == 1:
        raise ParameterError(
            "share_every",
            f"{METHOD}'s share_every is 1, which leaves nothing to the most urgent; it takes 0, or 2 or more",
        )
    return share_every
