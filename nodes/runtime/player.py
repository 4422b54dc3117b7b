"""Playing a timeline: publications at their moments, and how late each one was."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodes.runtime.publisher import Publication, Unpublishable, publication, whole

# The event loop's timer has a grain of 1 ms. So the loop wakes a little early and the rest is slept through exactly.
EARLY_NS = 1_500_000
# The loop sleeps by a clock that never steps; so often it looks at the one that does, and by which moments are given.
LOOK_NS = 1_000_000_000
LATEST_NS = 2**63 - 1  # the year 2262


@dataclass(frozen=True, slots=True)
class Moment:
    """A publication and when it is due (ns since 1970)."""

    due_ns: int
    what: Publication


def timeline(start_ns: Any, actions: Any) -> list[Moment]:
    """From JSON values, in the order of time; Unpublishable names the action that cannot be."""
    if not whole(start_ns) or not isinstance(actions, list):
        raise Unpublishable("play takes start_ns (a whole number) and actions (a list)")
    moments = []
    for index, action in enumerate(actions):
        try:
            at_ns = action["at_ns"]
            place = action.get("place", ())
            what = publication(action["topic"], action["priority"], action["size"], place)
        except (TypeError, KeyError, AttributeError):
            raise Unpublishable(f"actions[{index}] needs at_ns, topic, priority, size") from None
        except Unpublishable as error:
            raise Unpublishable(f"actions[{index}]: {error}") from None
        if not whole(at_ns):
            raise Unpublishable(f"actions[{index}]: at_ns is {at_ns!r}; it must be a whole number")
        if not 0 <= start_ns + at_ns <= LATEST_NS:
            raise Unpublishable(
                f"actions[{index}]: start_ns + at_ns is {start_ns + at_ns}; it goes from 0 to {LATEST_NS}"
            )
        moments.append(Moment(start_ns + at_ns, what))
    moments.sort(key=lambda moment: moment.due_ns)
    return moments


class Player:
    """Plays timelines, several at once if asked to."""

    def __init__(
        self,
        publish: Callable[[Publication, int], object],
        watch: Callable[[asyncio.Task[None]], object],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._publish = publish  # what, due_ns
        self._watch = watch  # told of each task, so that somebody notices if it fails
        self._clock = clock  # ns since 1970; may step
        self._tasks: set[asyncio.Task[None]] = set()
        self.to_come = 0

    def play(self, moments: list[Moment]) -> None:
        """Begin; returns at once."""
        self.to_come += len(moments)
        task = asyncio.create_task(self._play(moments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._watch(task)

    def stop(self) -> None:
        """Nothing more is published."""
        for task in self._tasks:
            task.cancel()
        self.to_come = 0

    async def _play(self, moments: list[Moment]) -> None:
        for moment in moments:
            await asyncio.sleep(0)  # also when late: others want to run
            await self._until(moment.due_ns)
            self._publish(moment.what, moment.due_ns)
            self.to_come -= 1

    async def _until(self, due_ns: int) -> None:
        while (rest_ns := due_ns - self._clock()) > 0:
            if rest_ns > EARLY_NS:
                await asyncio.sleep(min(rest_ns - EARLY_NS, LOOK_NS) / 1e9)
            else:
                time.sleep(rest_ns / 1e9)
