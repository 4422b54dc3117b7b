"""How long TCP waits before it sends something again, from the round trips it has seen. Pure; nanoseconds."""

from testbed.backends.simulated.loop import SECOND

LEAST_RTO, LONGEST_RTO, FIRST_RTO = SECOND // 5, 120 * SECOND, SECOND
TICK = SECOND // 250  # of the kernel


class RoundTrips:
    """The shortest, and a smoothed one with how much it varies (RFC 6298)."""

    def __init__(self) -> None:
        self.shortest: int | None = None
        self._smooth = 0
        self._vary = 0

    @property
    def known(self) -> bool:
        return self.shortest is not None

    def on_sample(self, took: int) -> None:
        """One more round trip."""
        if self.shortest is None:
            self.shortest, self._smooth, self._vary = took, took, took // 2
            return
        self.shortest = min(self.shortest, took)
        self._vary += (abs(self._smooth - took) - self._vary) // 4
        self._smooth += (took - self._smooth) // 8

    def timeout(self, backoff: int) -> int:
        """After so long without a word, all that is under way counts as lost."""
        if not self.known:
            return FIRST_RTO * backoff
        return min((self._smooth + max(4 * self._vary, LEAST_RTO)) * backoff, LONGEST_RTO)

    def before_probe(self, alone: bool) -> int:
        """When to probe (RFC 8985, 7.2); the acknowledgement of a packet that is alone may have been put off."""
        return min(self.timeout(1), 2 * self._smooth + (LEAST_RTO if alone else 2 * TICK))
