"""Peers that could not be reached, and what follows when one of them is there again.

Then it may have been this broker that was cut off: what its guests published meanwhile has not left it, and nobody
out there knows of it. It is published again, once the overlay has had time to repair itself; until then the guests are
not told that it is in good hands.
"""

from nodes.overlay.base import Peer

UNNOTICED_S = 30.0  # so long it may take until a broker knows that it is cut off


class LostPeers:
    """Of one broker."""

    def __init__(self) -> None:
        self._since: dict[Peer, float] = {}
        self._cut_off_since: float | None = None
        self._again_at: float | None = None
        self._from = 0.0  # what was published since then goes out again

    def any_but(self, known: set[Peer]) -> bool:
        """Whether there are others than these."""
        return not known.issuperset(self._since)

    def lose(self, peer: Peer, now: float) -> bool:
        """Whether that is news."""
        new = peer not in self._since
        self._since.setdefault(peer, now)
        return new

    def since(self, moment: float) -> list[Peer]:
        """Those that were lost at that moment or later, and are not back."""
        return [peer for peer, lost_at in self._since.items() if lost_at >= moment]

    def cut_off(self, now: float) -> float:
        """No other broker can be reached; since when."""
        if self._cut_off_since is None:
            self._cut_off_since = now
        return self._cut_off_since

    def is_back(self, peer: Peer, repaired_at: float) -> bool:
        """A link to it stands; whether there was a loss, all of which is repaired at that moment."""
        losses = [self._since.pop(peer, None), self._cut_off_since]
        moments = [moment - UNNOTICED_S for moment in losses if moment is not None]
        if not moments:
            return False
        self._cut_off_since = None
        if self._again_at is not None:
            moments.append(self._from)
        self._from, self._again_at = min(moments), repaired_at
        return True

    def next_deadline(self) -> float | None:
        return self._again_at

    def due(self, now: float) -> float | None:
        """What was published since this moment is to be published again now; None: nothing."""
        if self._again_at is None or now < self._again_at:
            return None
        self._again_at = None
        return self._from
