"""A sensor: it publishes on request or by a timeline of its own.

A publication with custody is in the sensor's journal before it is sent, until it is acknowledged and for a while after.
If the disk fails, the sensor logs that once, and sends the publication all the same.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nodes.protocol.wire import Message
from nodes.runtime.client import Client
from nodes.runtime.config import NodeConfig
from nodes.runtime.journal import Journal
from nodes.runtime.lifecycle import State
from nodes.runtime.log import Log, about_published, hex_id, last_counter
from nodes.runtime.node import Refused
from nodes.runtime.publisher import InvalidPublication, Publication, Publisher, publication, whole

# The event loop's timer has a resolution of 1 ms. So the loop wakes a little early, and the player sleeps for the rest.
EARLY_NS = 1_500_000
# The loop sleeps by a clock that never steps. Due times are on the system clock, which may step: how often to read it.
RECHECK_NS = 1_000_000_000
LATEST_NS = 2**63 - 1  # the year 2262


@dataclass(frozen=True, slots=True)
class DuePublication:
    """A publication and when it is due (ns since 1970)."""

    due_ns: int
    what: Publication


def timeline(start_ns: Any, actions: Any) -> list[DuePublication]:
    """From JSON values, in the order of time; Unpublishable names the action that cannot be."""
    if not whole(start_ns) or not isinstance(actions, list):
        raise InvalidPublication("play takes start_ns (a whole number) and actions (a list)")
    entries = []
    for index, action in enumerate(actions):
        try:
            at_ns = action["at_ns"]
            place = action.get("place", ())
            what = publication(action["topic"], action["priority"], action["size"], place)
        except (TypeError, KeyError, AttributeError):
            raise InvalidPublication(
                f"actions[{index}] needs at_ns, topic, priority, size"
            ) from None
        except InvalidPublication as error:
            raise InvalidPublication(f"actions[{index}]: {error}") from None
        if not whole(at_ns):
            raise InvalidPublication(
                f"actions[{index}]: at_ns is {at_ns!r}; it must be a whole number"
            )
        if not 0 <= start_ns + at_ns <= LATEST_NS:
            raise InvalidPublication(
                f"actions[{index}]: start_ns + at_ns is {start_ns + at_ns}; it goes from 0 to {LATEST_NS}"
            )
        entries.append(DuePublication(start_ns + at_ns, what))
    entries.sort(key=lambda entry: entry.due_ns)
    return entries


class Player:
    """Plays timelines, several at once if asked to."""

    def __init__(
        self,
        publish: Callable[[Publication, int], object],
        watch: Callable[[asyncio.Task[None]], object],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._publish = publish  # what, due_ns
        self._watch = watch  # gets each task, so that the node fails if the task fails
        self._clock = clock  # ns since 1970; may step
        self._tasks: set[asyncio.Task[None]] = set()
        self.to_come = 0

    def play(self, entries: list[DuePublication]) -> None:
        """Begin; returns at once."""
        self.to_come += len(entries)
        task = asyncio.create_task(self._play(entries))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._watch(task)

    def stop(self) -> None:
        """Nothing more is published."""
        for task in self._tasks:
            task.cancel()
        self.to_come = 0

    async def _play(self, entries: list[DuePublication]) -> None:
        for entry in entries:
            await asyncio.sleep(0)  # also when late: let other tasks run
            await self._until(entry.due_ns)
            self._publish(entry.what, entry.due_ns)
            self.to_come -= 1

    async def _until(self, due_ns: int) -> None:
        while (rest_ns := due_ns - self._clock()) > 0:
            if rest_ns > EARLY_NS:
                await asyncio.sleep(min(rest_ns - EARLY_NS, RECHECK_NS) / 1e9)
            else:
                time.sleep(rest_ns / 1e9)


class Sensor(Client):
    """The sensor's shell."""

    def __init__(self, config: NodeConfig, log: Log) -> None:
        super().__init__(config, log)
        self._journal: Journal | None = None
        self._journal_problem: str | None = None
        counter = last_counter(config.log)
        if config.journal is not None and self.reliability.custody_from is not None:
            with self._on_disk():
                self._journal = Journal(config.journal, config.run)
                counter = max(counter, self._journal.highest_id & 0xFFFFFFFF)
        self._publisher = Publisher(config.number, counter)
        self._player = Player(self._publish, self.depend_on)

    @property
    def playing(self) -> int:
        return self._player.to_come

    def begin_stop(self) -> None:
        self._player.stop()

    async def open(self) -> None:
        if self._journal is not None:
            with self._on_disk():
                self.core.repeat(self._recently_acknowledged(self._journal), self.now())
                self.perform(self.core.restore(self._journal.pending(), self.now()))
        await super().open()

    def _recently_acknowledged(self, journal: Journal) -> list[Message]:
        """Acknowledged publications that subscribers may still have missed."""
        oldest_ns = time.time_ns() - round(self.reliability.retain_s * 1e9)
        return [each for each in journal.recently_acknowledged() if each.published_ns >= oldest_ns]

    def publish(self, topic: Any, priority: Any, size: Any, place: Any = ()) -> str:
        self._must_run()
        identity, problem = self._publish(publication(topic, priority, size, place), due_ns=None)
        if problem is not None:
            raise Refused(f"message {identity} was dropped: {problem}")
        return identity

    def play(self, start_ns: Any, actions: Any) -> int:
        self._must_run()
        entries = timeline(start_ns, actions)
        self.perform(self.core.advertise((each.what.topic for each in entries), self.now()))
        self._player.play(entries)
        return len(entries)

    def forget(self, message_id: int) -> None:
        if self._journal is not None:
            with self._on_disk():
                self._journal.acknowledged(message_id)

    def _publish(self, what: Publication, due_ns: int | None) -> tuple[str, str | None]:
        """The message's id; and why it was dropped, if it was."""
        published_ns = time.time_ns()
        message = self._publisher.make(what, published_ns)
        identity = hex_id(message.message_id)
        late_ns = 0 if due_ns is None else published_ns - due_ns
        self.log.write("publish", t=published_ns, **about_published(message, late_ns))
        self.published += 1
        if self._journal is not None and self.reliability.custody(message.priority):
            with self._on_disk():
                self._journal.add(message)
        problems = self.perform(self.core.publish(message, self.now()))
        lost = problems and not self.core.is_pending(message.message_id)
        return identity, problems[0] if lost else None

    @contextmanager
    def _on_disk(self) -> Iterator[None]:
        """Log a row of equal disk failures once."""
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
