"""A divided message on the receiving side, joined piece by piece, never longer than a message may be."""

from nodes.wire import MAX_MESSAGE_BYTES


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
