"""When a node of Scribe renews what it has said: often after a change, then ever more seldom."""


class Renewals:
    """Each `renew_s` seconds at first; the pause doubles up to `idle_s`, unless that is shorter."""

    def __init__(self, renew_s: float, idle_s: float) -> None:
        self._renew_s = renew_s
        self._idle_s = max(renew_s, idle_s)
        self._pause_s = renew_s
        self._at = 0.0
        self._count = 0
        self.calm = False  # nothing had changed for a while at the last one

    def soon(self, now: float) -> None:
        """Something has changed: others may stand elsewhere, too."""
        self._pause_s = self._renew_s
        self._at = min(self._at, now + self._renew_s)

    def due(self, now: float) -> bool:
        """Whether it is time."""
        if now < self._at:
            return False
        self.calm = self._pause_s > self._renew_s
        self._at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, self._idle_s)
        self._count += 1
        return True

    def every(self, number: int) -> bool:
        """Whether this one is one of so many."""
        return self._count % number == 0
