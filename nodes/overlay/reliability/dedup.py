"""Which messages were here already, in little memory: per origin the newest counters as bits of one number.

Ids come from `wire.message_id`: origin above, counter below. Counters of one origin arrive almost in order, so a
window of the newest 1,024 tells repetitions apart (as IPsec does, RFC 4303, 3.4.3). An id from before the window counts
as new: to hear an alert twice is better than to miss it. For the same reason the origins heard of longest ago may be
forgotten, when there are too many: nobody who makes origins up can fill the memory.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

WINDOW = 1024
MAX_ORIGINS = 4096  # about 1.5 MiB


class DedupWindow:
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


# Which publications with custody a node was handed, so that it can say what it has, and knows what comes again.
#
# `Seen` remembers the newest counters of each origin; a publication with custody may come again when thousands of
# others have been published since. So these are remembered one by one, whatever their age, as far as there is room.


MAX_RECENT_DELIVERIES = 8192


class DeliveryRecord(NamedTuple):
    """A publication that was handed to the application."""

    message_id: int
    topic: str
    level: int
    at: float


class RecentDeliveries:
    """The newest of them."""

    def __init__(self) -> None:
        self._deliveries: OrderedDict[int, DeliveryRecord] = OrderedDict()

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._deliveries

    def add(self, delivery: DeliveryRecord) -> None:
        """Remember it as the newest."""
        self._deliveries[delivery.message_id] = delivery
        self._deliveries.move_to_end(delivery.message_id)
        if len(self._deliveries) > MAX_RECENT_DELIVERIES:
            self._deliveries.popitem(last=False)

    def since(self, when: float, topics: Iterable[str]) -> dict[str, list[int]]:
        """The ids of what was heard on each of these topics since then, the newest first."""
        found: dict[str, list[int]] = {topic: [] for topic in topics}
        for delivery in reversed(self._deliveries.values()):
            if delivery.at >= when and delivery.topic in found:
                found[delivery.topic].append(delivery.message_id)
        return found
