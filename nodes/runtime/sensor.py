"""A sensor: it publishes, when asked to or by a timeline of its own.

What it publishes with custody is in its journal before it is sent, until somebody has taken it and for a while after.
If the disk does not take it, the log says so once, and it is sent all the same.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nodes.runtime.client import Client
from nodes.runtime.config import NodeConfig
from nodes.runtime.journal import Journal
from nodes.runtime.lifecycle import State
from nodes.runtime.log import Log, about_published, hex_id, last_counter
from nodes.runtime.node import Refused
from nodes.runtime.player import Player, timeline
from nodes.runtime.publisher import Publication, Publisher, publication
from nodes.wire import Message


class Sensor(Client):
    """The sensor's shell."""

    def __init__(self, config: NodeConfig, log: Log) -> None:
        super().__init__(config, log)
        self._journal: Journal | None = None
        self._journal_problem: str | None = None
        counter = last_counter(config.log)
        if config.journal is not None and self.promises.custody_from is not None:
            with self._on_disk():
                self._journal = Journal(config.journal, config.run)
                counter = max(counter, self._journal.highest_id & 0xFFFFFFFF)
        self._publisher = Publisher(config.number, counter)
        self._player = Player(self._publish, self.depend_on)

    @property
    def playing(self) -> int:
        return self._player.to_come

    def quiet(self) -> None:
        self._player.stop()

    async def open(self) -> None:
        if self._journal is not None:
            with self._on_disk():
                self.core.repeat(self._taken_lately(self._journal), self.now())
                self.perform(self.core.restore(self._journal.owed(), self.now()))
        await super().open()

    def _taken_lately(self, journal: Journal) -> list[Message]:
        """What others may still have missed."""
        oldest_ns = time.time_ns() - round(self.promises.retain_s * 1e9)
        return [each for each in journal.taken_lately() if each.published_ns >= oldest_ns]

    def publish(self, topic: Any, priority: Any, size: Any, place: Any = ()) -> str:
        self._must_run()
        identity, problem = self._publish(publication(topic, priority, size, place), due_ns=None)
        if problem is not None:
            raise Refused(f"message {identity} was dropped: {problem}")
        return identity

    def play(self, start_ns: Any, actions: Any) -> int:
        self._must_run()
        moments = timeline(start_ns, actions)
        self.perform(self.core.advertise((each.what.topic for each in moments), self.now()))
        self._player.play(moments)
        return len(moments)

    def forget(self, message_id: int) -> None:
        if self._journal is not None:
            with self._on_disk():
                self._journal.taken(message_id)

    def _publish(self, what: Publication, due_ns: int | None) -> tuple[str, str | None]:
        """The message's id; and why it was dropped, if it was."""
        published_ns = time.time_ns()
        message = self._publisher.make(what, published_ns)
        identity = hex_id(message.message_id)
        late_ns = 0 if due_ns is None else published_ns - due_ns
        self.log.write("publish", t=published_ns, **about_published(message, late_ns))
        self.published += 1
        if self._journal is not None and self.promises.custody(message.priority):
            with self._on_disk():
                self._journal.add(message)
        problems = self.perform(self.core.publish(message, self.now()))
        lost = problems and not self.core.owes(message.message_id)
        return identity, problems[0] if lost else None

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        """One line in the log for a row of equal failures."""
        try:
            yield
        except OSError as error:
            problem = error.strerror or str(error)
            if problem != self._journal_problem:
                self.log.write("journal", reason=f"cannot be written: {problem}")
            self._journal_problem = problem
        else:
            self._journal_problem = None

    def _must_run(self) -> None:
        if self.state is not State.RUNNING:
            raise Refused(f"{self.config.name} is {self.state}; it publishes only while it runs")
