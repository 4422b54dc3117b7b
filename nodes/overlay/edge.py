"""The edge of every overlay: a sensor or subscriber with one link, to its home broker.

What it publishes is sent to the home broker, also while the link is down (the shell keeps the queue); whenever the
link comes up, it subscribes to all its topics (again). A publication that comes a second time is not delivered.
"""

from nodes.overlay.base import Action, Deliver, Duplicate, Peer, Refuse, Send, Station
from nodes.overlay.seen import Seen
from nodes.wire import Kind, Message


class Edge:
    """A node that uses the overlay without being a broker of it."""

    def __init__(self, station: Station, home: Peer, topics: tuple[str, ...]) -> None:
        self._station = station
        self._home = home
        self._topics = dict.fromkeys(topics)  # an ordered set
        self._up = False
        self._confirmed: set[str] = set()
        self._seen = Seen()

    @property
    def ready(self) -> bool:
        """The link is up and the broker has all subscriptions."""
        return self._up and self._confirmed.issuperset(self._topics)

    @property
    def left(self) -> bool:
        return True

    def publish(self, message: Message, now: float) -> list[Action]:
        """The application here has something to say."""
        return [Send(self._home, message)]

    def on_link_up(self, peer: Peer, now: float) -> list[Action]:
        self._up = True
        return [
            Send(peer, Message(Kind.SUBSCRIBE, origin=self._station.number, topic=topic))
            for topic in self._topics
        ]

    def on_link_down(self, peer: Peer, now: float, orderly: bool = False) -> list[Action]:
        self._up = False
        self._confirmed.clear()
        return []

    def on_unreachable(self, peer: Peer, now: float) -> list[Action]:
        return []

    def leave(self, now: float) -> list[Action]:
        return []

    def on_message(self, peer: Peer, message: Message, now: float) -> list[Action]:
        match message.kind:
            case Kind.PUBLISH:
                new = self._seen.add(message.message_id)
                return [Deliver(message) if new else Duplicate(message)]
            case Kind.SUBSCRIBED:
                if message.topic in self._topics:
                    self._confirmed.add(message.topic)
                return []
            case _:
                return [Refuse(peer, f"{message.kind.name} from a broker to a node at the edge")]

    def next_deadline(self) -> float | None:
        return None

    def on_deadline(self, now: float) -> list[Action]:
        return []
