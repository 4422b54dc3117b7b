"""Who publishes on the topics whose root a node of Scribe is: they have looked for it, and do so again.

The root passes questions on to them, so that a question comes to all who publish, as with the other methods. A node
that finds that it is the root no more hands them over: it looks for the new root in their name, which answers them.
"""

from collections.abc import Callable


class Publishers:
    """Of a node, by topic. Who is not heard of for `forget_s` seconds is forgotten."""

    def __init__(self, forget_s: float) -> None:
        self._forget_s = forget_s
        self._until: dict[str, dict[int, float]] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def add(self, topic: str, node: int, now: float) -> None:
        """It has looked for the topic's root."""
        self._until.setdefault(topic, {})[node] = now + self._forget_s

    def of(self, topic: str) -> list[int]:
        return list(self._until.get(topic, ()))

    def forget_node(self, number: int) -> None:
        """It is dead."""
        self._keep(lambda node, _: node != number)

    def forget_old(self, now: float) -> None:
        """Who has not looked for long publishes no more, or to another root."""
        self._keep(lambda _, until: until >= now)

    def hand_over(self, elsewhere: Callable[[str], bool]) -> list[tuple[str, int]]:
        """Those of topics whose root is elsewhere now; they are forgotten here."""
        gone = [topic for topic in self._until if elsewhere(topic)]
        return [(topic, node) for topic in gone for node in self._until.pop(topic)]

    def _keep(self, wanted: Callable[[int, float], bool]) -> None:
        kept = {
            topic: {node: until for node, until in nodes.items() if wanted(node, until)}
            for topic, nodes in self._until.items()
        }
        self._until = {topic: nodes for topic, nodes in kept.items() if nodes}
