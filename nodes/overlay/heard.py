"""Which publications with custody a node was handed, so that it can say what it has, and knows what comes again.

`Seen` remembers the newest counters of each origin; a publication with custody may come again when thousands of others
have been published since. So these are remembered one by one, whatever their age, as far as there is room.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

MAX_HEARD = 8192


class Heard(NamedTuple):
    """A publication that was handed to the application."""

    message_id: int
    topic: str
    level: int
    at: float


class HeardLately:
    """The newest of them."""

    def __init__(self) -> None:
        self._heard: OrderedDict[int, Heard] = OrderedDict()

    def __contains__(self, message_id: int) -> bool:
        return message_id in self._heard

    def add(self, heard: Heard) -> None:
        """Remember it as the newest."""
        self._heard[heard.message_id] = heard
        self._heard.move_to_end(heard.message_id)
        if len(self._heard) > MAX_HEARD:
            self._heard.popitem(last=False)

    def since(self, when: float, topics: Iterable[str]) -> dict[str, list[int]]:
        """The ids of what was heard on each of these topics since then, the newest first."""
        found: dict[str, list[int]] = {topic: [] for topic in topics}
        for heard in reversed(self._heard.values()):
            if heard.at >= when and heard.topic in found:
                found[heard.topic].append(heard.message_id)
        return found
