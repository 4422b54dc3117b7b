"""Which messages were here already, in little memory: per origin the newest counters as bits of one number.

Ids come from `wire.message_id`: origin above, counter below. Counters of one origin arrive almost in order, so a
window of the newest 1,024 tells repetitions apart (as IPsec does, RFC 4303, 3.4.3). An id from before the window counts
as new: to hear an alert twice is better than to miss it. For the same reason the origins heard of longest ago may be
forgotten, when there are too many: nobody who makes origins up can fill the memory.
"""

from collections import OrderedDict

WINDOW = 1024
MAX_ORIGINS = 4096  # about 1.5 MiB


class Seen:
    """A memory of message ids."""

    def __init__(self) -> None:
        # origin -> newest counter, bit i: newest - i; the origin heard of last stands last
        self._origins: OrderedDict[int, tuple[int, int]] = OrderedDict()

    @property
    def origins(self) -> int:
        """How many origins are remembered."""
        return len(self._origins)

    def add(self, message_id: int) -> bool:
        """Remember the id; whether it is new."""
        origin, counter = message_id >> 32, message_id & 0xFFFFFFFF
        newest, bits = self._origins.get(origin, (counter, 0))
        if counter > newest:
            bits = (bits << min(counter - newest, WINDOW)) & ((1 << WINDOW) - 1)
            newest = counter
        age = newest - counter
        if age >= WINDOW:
            return True
        new = not bits >> age & 1
        self._origins[origin] = (newest, bits | 1 << age)
        self._origins.move_to_end(origin)
        if len(self._origins) > MAX_ORIGINS:
            self._origins.popitem(last=False)
        return new
