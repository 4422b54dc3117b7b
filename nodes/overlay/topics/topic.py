"""What a node wants of a topic, and what it has."""

from dataclasses import dataclass, field

from nodes.overlay.topics.keys import Role
from nodes.overlay.topics.waiting import Waiting

MOST_WAITING = 64  # publications without custody, of a topic whose key is not inserted yet


@dataclass(slots=True)
class Topic:
    """At one node."""

    name: str
    advertised: bool = False
    subscribed: bool = False
    keys: dict[Role, bytes] = field(default_factory=dict)  # inserted
    waiting: Waiting = field(default_factory=lambda: Waiting(MOST_WAITING))

    @property
    def role(self) -> Role | None:
        """Which key the node should have."""
        if self.subscribed:
            return Role.SUBSCRIBER
        return Role.PUBLISHER if self.advertised else None
