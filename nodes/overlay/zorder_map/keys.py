"""Keys of areas: the number of the area's first point on the curve, then that of the broker.

    4 bytes for each dimension of the space, 4 bytes of the broker's number; big-endian

In key order, each broker owns the points from its own first one up to the next broker's first one. The last broker also
owns those before the first. Of two brokers that begin at the same point, the one with the higher number owns it.
"""

from functools import lru_cache
from hashlib import blake2b

from nodes.overlay.zorder_map.curve import interleave, intervals
from nodes.protocol.interests import Interest
from nodes.protocol.regions import Box, Spans
from nodes.protocol.wire import COORDINATE_BYTES, Message, encode_topic
from nodes.protocol.zorder_map_messages import Toward

NUMBER_BYTES = 4
BEHIND = b"\xff" * (NUMBER_BYTES + 1)  # after the number of every broker
COORDINATE_BITS = 8 * COORDINATE_BYTES
STARTS = ("even", "hash")  # where brokers begin


class Keys:
    """The keys of a space with so many dimensions."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.bits = dimensions * COORDINATE_BITS  # of a point's number
        self._size = dimensions * COORDINATE_BYTES

    def key(self, point: int, number: int) -> bytes:
        """The key of the area that begins at this point and belongs to the broker with this number."""
        return point.to_bytes(self._size) + number.to_bytes(NUMBER_BYTES)

    def sought(self, point: int) -> bytes:
        """The key to route to for the owner of this point; no broker has it as its own key."""
        return point.to_bytes(self._size) + BEHIND

    def start(self, key: bytes) -> int:
        """The first point of the area with this key."""
        return int.from_bytes(key[: self._size])

    def first_start(self, number: int, how: str) -> int:
        """The first point of a new broker's area.

        `even`: its number with the bits in reverse, so that consecutive numbers are spread out. `hash`: anywhere.
        """
        if how == "hash":
            return self._hashed(b"broker" + number.to_bytes(NUMBER_BYTES))
        bits = 8 * NUMBER_BYTES
        return int(f"{number:0{bits}b}"[::-1], 2) << (self.bits - bits)

    def topic_point(self, topic: str) -> int:
        """The point at which interests without a box are registered; each publication of the topic goes there."""
        return self._hashed(b"topic" + encode_topic(topic))

    def _hashed(self, data: bytes) -> int:
        return int.from_bytes(blake2b(data, digest_size=self._size).digest())


# Points of publications and interests on the curve.
#
# A publication with a place goes to the owner of the place. Interests with a box are registered at all points of the
# intervals that cover the box. Interests without a box are registered at one point for each topic, and every
# publication goes there, too. So an interest in a whole topic costs one registration, however many brokers there are,
# and each publication a second route. Registering it at every point would cost a registration at every broker.
#
# The map has a fixed number of dimensions. Of a place or box with more dimensions, the first ones determine where it
# lies; one with fewer has 0 for the missing ones. All dimensions determine whether an interest matches a publication.


REMEMBERED = 4096  # interests whose intervals are cached


class CurveSpace:
    """The space of a map; a box is registered on at most `most` intervals."""

    def __init__(self, keys: Keys, most: int) -> None:
        self.keys = keys
        self._most = most
        self.spans = lru_cache(REMEMBERED)(self._spans)

    def point(self, message: Message, toward: Toward) -> int:
        """The point to whose owner a publication goes."""
        if toward is Toward.PLACE:
            return interleave(self._fitted(message.place), COORDINATE_BITS)
        return self.keys.topic_point(message.topic)

    def _spans(self, interest: Interest) -> Spans:
        """The points at which the interest must be registered."""
        if interest.box is None:
            topic_point = self.keys.topic_point(interest.topic)
            return Spans([(topic_point, topic_point)])
        box = Box(self._fitted(interest.box.low), self._fitted(interest.box.high))
        return Spans(intervals(box, COORDINATE_BITS, self._most))

    def _fitted(self, place: tuple[int, ...]) -> tuple[int, ...]:
        missing = self.keys.dimensions - len(place)
        return (*place, *(0 for _ in range(missing)))[: self.keys.dimensions]
