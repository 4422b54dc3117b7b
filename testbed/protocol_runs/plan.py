"""What happens in the experiment on stopping, and when (Banno 2013): pure, for every method the same."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Stopping:
    """One run. All subscribers are there, leave one by one, come back one by one, and leave again."""

    publishers: int
    nodes: int
    seed: int
    trial: int = 0
    subscribers: int = 100
    interval_ms: int = 200  # between two publications of a publisher
    step_ms: int = 10  # between two subscribers that come or go
    rest_ms: int = 1_000  # so long all stay, and all are gone
    delay_ms: int = 10  # of a message
    bin_ms: int = 50

    def random(self, what: str) -> Random:
        """Chance, the same for all methods."""
        return Random(f"{self.seed} {self.trial} {self.publishers} {what}")

    @property
    def moving_ms(self) -> int:
        """Until all have come, or gone."""
        return self.subscribers * self.step_ms

    @property
    def empty_ms(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The two times when nobody subscribes: from the last that leaves."""
        first = self.rest_ms + self.moving_ms - self.step_ms
        again = first + 2 * (self.moving_ms + self.rest_ms)
        joins = self.rest_ms + self.moving_ms + self.rest_ms
        return (first, joins), (again, self.end_ms)

    @property
    def end_ms(self) -> int:
        return 4 * self.rest_ms + 3 * self.moving_ms

    def moves(self) -> list[tuple[int, int, bool]]:
        """Moment in ms, which subscriber, whether it comes; those who are there at the beginning are not told."""
        random = self.random("moves")
        found = []
        for turn, comes in enumerate((False, True, False)):
            begin = self.rest_ms + turn * (self.moving_ms + self.rest_ms)
            order = random.sample(range(self.subscribers), self.subscribers)
            found += [
                (begin + rank * self.step_ms, subscriber, comes)
                for rank, subscriber in enumerate(order)
            ]
        return found

    def publications(self) -> list[tuple[int, int]]:
        """Moment in microseconds and publisher: each at its own regular times."""
        random = self.random("publications")
        first = [random.randrange(self.interval_ms * 1000) for _ in range(self.publishers)]
        return sorted(
            (moment, publisher)
            for publisher, begin in enumerate(first)
            for moment in range(begin, self.end_ms * 1000, self.interval_ms * 1000)
        )
