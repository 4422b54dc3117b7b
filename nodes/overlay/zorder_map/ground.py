"""Where on the curve publications happen, and where interests must be known.

A publication with a place goes to the owner of the place, where interests with a box are known: at all points of the
stretches on which the box lies. Interests without a box want the topic wherever it happens, or nowhere in particular:
they are known at one point for each topic, its home, and every publication goes there, too. So to want everything of a
topic costs one registration, however many brokers there are, and each publication a second way; the other choice, to
know such interests at every point, would cost a registration at every broker.

The map has a fixed number of dimensions. Of a place or box with more, the first ones tell where it lies; one with
fewer has 0 for those that are missing. Whether an interest really wants a publication is decided by all dimensions.
"""

from functools import lru_cache

from nodes.overlay.interests import Interest
from nodes.overlay.zorder_map.boxes import Box, intervals
from nodes.overlay.zorder_map.curve import interleave
from nodes.overlay.zorder_map.keys import COORDINATE_BITS, Keys
from nodes.overlay.zorder_map.spans import Spans
from nodes.overlay.zorder_map.words import Toward
from nodes.wire import Message

REMEMBERED = 4096  # interests whose stretches are


class Ground:
    """The space of a map; a box is known on at most `most` stretches."""

    def __init__(self, keys: Keys, most: int) -> None:
        self.keys = keys
        self._most = most
        self.spans = lru_cache(REMEMBERED)(self._spans)

    def point(self, message: Message, toward: Toward) -> int:
        """Whose owner a publication goes to."""
        if toward is Toward.PLACE:
            return interleave(self._fitted(message.place), COORDINATE_BITS)
        return self.keys.home(message.topic)

    def _spans(self, interest: Interest) -> Spans:
        """Where the interest must be known."""
        if interest.box is None:
            home = self.keys.home(interest.topic)
            return Spans([(home, home)])
        box = Box(self._fitted(interest.box.low), self._fitted(interest.box.high))
        return Spans(intervals(box, COORDINATE_BITS, self._most))

    def _fitted(self, place: tuple[int, ...]) -> tuple[int, ...]:
        missing = self.keys.dimensions - len(place)
        return (*place, *(0 for _ in range(missing)))[: self.keys.dimensions]
