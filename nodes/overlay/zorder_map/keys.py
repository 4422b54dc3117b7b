"""Keys of areas: the number of the area's first point on the curve, then that of the broker.

    4 bytes for each dimension of the space, 4 bytes of the broker's number; big-endian

Sorted by key, each broker owns the points from its own first one up to the next broker's first one, and the last broker
those before the first, too. Of two that begin at the same point the one with the higher number owns it.
"""

from hashlib import blake2b

from nodes.wire import COORDINATE_BYTES, encode_topic

NUMBER_BYTES = 4
BEHIND = b"\xff" * (NUMBER_BYTES + 1)  # behind the number of every broker
COORDINATE_BITS = 8 * COORDINATE_BYTES
STARTS = ("even", "hash")  # where brokers begin


class Keys:
    """Of a space with so many dimensions."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.bits = dimensions * COORDINATE_BITS  # of a point's number
        self._size = dimensions * COORDINATE_BYTES

    def key(self, point: int, number: int) -> bytes:
        """Of the area that begins at this point, of the broker with this number."""
        return point.to_bytes(self._size) + number.to_bytes(NUMBER_BYTES)

    def sought(self, point: int) -> bytes:
        """The key in whose gap the owner of this point has it; nobody has it as his own."""
        return point.to_bytes(self._size) + BEHIND

    def start(self, key: bytes) -> int:
        """The first point of the area with this key."""
        return int.from_bytes(key[: self._size])

    def first_start(self, number: int, how: str) -> int:
        """Where a broker begins that knows nothing of the others.

        `even`: its number with the bits in reverse, so that numbers in a row are spread out. `hash`: anywhere.
        """
        if how == "hash":
            return self._hashed(b"broker" + number.to_bytes(NUMBER_BYTES))
        bits = 8 * NUMBER_BYTES
        return int(f"{number:0{bits}b}"[::-1], 2) << (self.bits - bits)

    def home(self, topic: str) -> int:
        """The point at which publications meet those who want the topic wherever it happens."""
        return self._hashed(b"topic" + encode_topic(topic))

    def _hashed(self, data: bytes) -> int:
        return int.from_bytes(blake2b(data, digest_size=self._size).digest())
