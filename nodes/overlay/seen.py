"""Which messages were here already, in little memory: per origin the newest counters as bits of one number.

Ids come from `wire.message_id`: origin above, counter below. Counters of one origin arrive almost in order, so a
window of the newest 1,024 tells repetitions apart (as IPsec does, RFC 4303, 3.4.3). An id from before the window counts
as new: to hear an alert twice is better than to miss it.
"""

WINDOW = 1024


class Seen:
    """A memory of message ids."""

    def __init__(self) -> None:
        self._origins: dict[
            int, tuple[int, int]
        ] = {}  # origin -> newest counter, bit i: newest - i

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
        return new
