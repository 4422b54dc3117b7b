"""How often a peer looks after its neighbours: each tick while anything changes, then ever more seldom.

A look is a check of the right neighbour and a question for one level, or two soon after a change. Where nothing is
lost without notice and the dead are reported, as between brokers, looks find nothing to mend; they are the last net. So
after as many as go three times through all levels without a change the pause doubles, up to that of an idle peer. Any
change wakes the peers concerned.
"""

from dataclasses import dataclass

SLACK = 8  # of so many ticks that another node counts, one more: clocks differ


@dataclass(slots=True)
class Pace:
    """Of one peer, counted in ticks."""

    pause: int = 1
    rest: int = 1  # until the next look
    calm: int = 0  # looks since something changed

    def wake(self) -> None:
        """Something has changed, or must be looked into."""
        self.pause, self.calm = 1, 0
        self.hurry()

    def hurry(self) -> None:
        """Look at the next tick, whatever follows."""
        self.rest = min(self.rest, 1)

    def tick(self, levels: int, idle: int) -> bool:
        """Whether it is time for a look."""
        self.rest -= 1
        if self.rest > 0:
            return False
        self.calm += 1
        if not self.sweeps(levels):
            self.pause = min(2 * self.pause, idle)
        self.rest = self.pause
        return True

    def sweeps(self, levels: int) -> bool:
        """Whether all levels have still to be gone through."""
        return self.calm <= 2 * levels + 2
