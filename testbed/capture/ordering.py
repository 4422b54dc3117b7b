"""Puts what two sockets of a link delivered into one order: by time stamp.

A link is heard at both ends, and neither socket knows of the other. A record is therefore held back for one whole
interval between two releases; whatever the other socket still had from before that is in by then. No clock is asked:
a step of the machine's clock neither holds a record for ever nor lets it go too early.
"""

from operator import itemgetter

Record = tuple[int, int, bytes]  # time stamp (ns since 1970), length on the wire, captured bytes

_TIME = itemgetter(0)


class HoldBack:
    """The records of one link that are not yet in its file."""

    def __init__(self) -> None:
        self._held: list[Record] = []  # there since before the last release
        self._fresh: list[Record] = []

    def __len__(self) -> int:
        return len(self._held) + len(self._fresh)

    def add(self, records: list[Record]) -> None:
        self._fresh += records

    def release(self) -> list[Record]:
        """The records held for a whole interval, and the fresh ones that belong between them."""
        everything = sorted(self._held + self._fresh, key=_TIME)
        self._fresh = []
        if not self._held:
            self._held = everything
            return []
        newest_held = max(map(_TIME, self._held))
        cut = len(everything)
        while everything[cut - 1][0] > newest_held:
            cut -= 1
        self._held = everything[cut:]
        return everything[:cut]

    def release_all(self) -> list[Record]:
        """Everything, in order: nothing more will come."""
        everything = sorted(self._held + self._fresh, key=_TIME)
        self._held, self._fresh = [], []
        return everything
