"""A sensor: it publishes, when asked to or by a timeline of its own."""

import time
from typing import Any

from nodes.runtime.client import Client
from nodes.runtime.config import NodeConfig
from nodes.runtime.lifecycle import State
from nodes.runtime.log import Log, about_published, hex_id, last_counter
from nodes.runtime.node import Refused
from nodes.runtime.player import Player, timeline
from nodes.runtime.publisher import Publication, Publisher, publication


class Sensor(Client):
    """The sensor's shell."""

    def __init__(self, config: NodeConfig, log: Log) -> None:
        super().__init__(config, log)
        self._publisher = Publisher(config.number, last_counter(config.log))
        self._player = Player(self._publish, self.depend_on)

    @property
    def playing(self) -> int:
        return self._player.to_come

    def quiet(self) -> None:
        self._player.stop()

    def publish(self, topic: Any, priority: Any, size: Any) -> str:
        self._must_run()
        identity, problem = self._publish(publication(topic, priority, size), due_ns=None)
        if problem is not None:
            raise Refused(f"message {identity} was dropped: {problem}")
        return identity

    def play(self, start_ns: Any, actions: Any) -> int:
        self._must_run()
        moments = timeline(start_ns, actions)
        self._player.play(moments)
        return len(moments)

    def _publish(self, what: Publication, due_ns: int | None) -> tuple[str, str | None]:
        """The message's id; and why it was dropped, if it was."""
        published_ns = time.time_ns()
        message = self._publisher.make(what, published_ns)
        actions = self.core.publish(message, self.now())
        identity = hex_id(message.message_id)
        late_ns = 0 if due_ns is None else published_ns - due_ns
        self.log.write("publish", t=published_ns, **about_published(message, late_ns))
        self.published += 1
        problems = self.perform(actions)
        return identity, problems[0] if problems else None

    def _must_run(self) -> None:
        if self.state is not State.RUNNING:
            raise Refused(f"{self.config.name} is {self.state}; it publishes only while it runs")
