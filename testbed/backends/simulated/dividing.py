"""The core in virtual time: where links meet, and packets between the sides of a partition are lost."""

from collections.abc import Sequence


class Divide:
    """Who cannot reach whom at present."""

    def __init__(self) -> None:
        self.partitions: dict[int, dict[str, int]] = {}  # number -> node -> side

    def part(self, number: int, sides: Sequence[Sequence[str]]) -> None:
        """These sides are apart from now on."""
        self.partitions[number] = {name: side for side, names in enumerate(sides) for name in names}

    def reunite(self, number: int) -> None:
        """They are so no more."""
        self.partitions.pop(number, None)

    def between(self, one: str, other: str) -> bool:
        """Whether these two are apart."""
        return any(
            one in side_of and other in side_of and side_of[one] != side_of[other]
            for side_of in self.partitions.values()
        )
