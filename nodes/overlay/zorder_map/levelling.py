"""Levelling by load (Ogawa, Nakamura, Saito, after Mercury): light brokers give up their areas and relieve heavy ones.

Each `level_s` seconds a broker with any load samples `k` others, at the ends of random walks. The load is the number of
events times the number of registered interests, over the last `level_s` seconds. If, of these and itself, one broker is
heavy (above the mean by more than the share `e`) and one is light (below it by as much), the sampling broker asks the
lightest one to relieve the heaviest. The lightest broker asks the heaviest for a point to begin at, and moves there.

Differences from the paper: a light broker gives its area to its left neighbour, not half to each. A key is the start of
an area, so an area for the right neighbour would change that neighbour's key. And a broker without load takes no
samples: an idle map sends no messages.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random

from nodes.overlay.topics.topic_graph import Context
from nodes.overlay.zorder_map.member import Member
from nodes.overlay.zorder_map.registry import Registry
from nodes.overlay.zorder_map.settings import Settings
from nodes.protocol.regions import Spans
from nodes.protocol.zorder_map_messages import Cut, Load, Offer, Relieve, Sample

STEPS = 6  # of a random walk
MOST_EVENTS = 4096  # that are remembered
ANSWER_PERIODS = 5  # waiting time for all samples, or for a point to begin at
LOCKED_PERIODS = 10  # for so long a heavy broker lets no second broker cut its area


@dataclass(slots=True)
class _Round:
    """A sampling round."""

    until: float
    tickets: set[int]
    loads: dict[int, int] = field(default_factory=dict)


class Levelling:
    """The load of one broker, its samples and its moves."""

    def __init__(
        self, member: Member, settings: Settings, registry: Registry, random: Random
    ) -> None:
        self._member = member
        self._level_s = settings.level_s
        self._k = settings.k
        self._e = settings.e
        self._by_area = settings.cut == "area"
        self._period_s = settings.period_s
        self._registry = registry
        self._random = random
        self._events: deque[tuple[float, int]] = deque(maxlen=MOST_EVENTS)
        self._at: float | None = None
        self._round: _Round | None = None
        self._asked: tuple[int, float] | None = None  # a heavy broker, and its answer's deadline
        self._locked_until = 0.0
        self._tickets = 0

    def next_deadline(self) -> float | None:
        moments = [self._at, None if self._round is None else self._round.until]
        return min((at for at in moments if at is not None), default=None)

    def served(self, point: int, now: float) -> None:
        """An event was matched at this point."""
        if not self._level_s:
            return
        self._events.append((now, point))
        if self._at is None:
            self._at = now + self._pause()

    def load(self, now: float) -> int:
        while self._events and self._events[0][0] < now - self._level_s:
            self._events.popleft()
        return len(self._events) * len(self._registry)

    def on_deadline(self, context: Context) -> None:
        now = context.now
        if self._round is not None and now >= self._round.until:
            self._decide(context)
        if self._at is not None and now >= self._at:
            loaded = self.load(now) > 0
            self._at = now + self._pause() if loaded or self._events else None
            if loaded:
                self._sample(context)

    def _pause(self) -> float:
        return self._level_s * (0.9 + 0.2 * self._random.random())

    # Samples

    def _sample(self, context: Context) -> None:
        tickets = range(self._tickets + 1, self._tickets + 1 + self._k)
        self._tickets += self._k
        self._round = _Round(context.now + ANSWER_PERIODS * self._period_s, set(tickets))
        for ticket in tickets:
            self.on_sample(Sample(self._member.number, ticket, STEPS), context)

    def on_sample(self, message: Sample, context: Context) -> None:
        neighbours = self._member.neighbours()
        if message.steps and neighbours:
            onward = Sample(message.asker, message.ticket, message.steps - 1)
            self._member.notify(self._random.choice(neighbours), onward, context)
        else:
            answer = Load(message.ticket, self.load(context.now))
            self._member.notify(message.asker, answer, context)

    def on_load(self, sender: int, message: Load, context: Context) -> None:
        if self._round is None or message.ticket not in self._round.tickets:
            return
        self._round.tickets.discard(message.ticket)
        self._round.loads[sender] = message.load
        if not self._round.tickets:
            self._decide(context)

    def _decide(self, context: Context) -> None:
        taken, self._round = self._round, None
        if taken is None:
            return
        loads = {**taken.loads, self._member.number: self.load(context.now)}
        mean = sum(loads.values()) / len(loads)
        heavy = max(loads, key=lambda node: loads[node])
        light = min(loads, key=lambda node: loads[node])
        if loads[heavy] > mean * (1 + self._e) and loads[light] < mean * (1 - self._e):
            self._member.notify(light, Relieve(heavy, loads[heavy]), context)

    # Moves

    def on_relieve(self, message: Relieve, context: Context) -> None:
        """Relieve a heavy broker as requested, unless this broker has become about as heavy."""
        if message.heavy != self._member.number and 2 * self.load(context.now) < message.load:
            self._asked = message.heavy, context.now + ANSWER_PERIODS * self._period_s
            self._member.notify(message.heavy, Offer(), context)

    def on_offer(self, sender: int, first: int, area: Spans, context: Context) -> None:
        """Another broker offers to take half of this area, which begins at `first`."""
        now = context.now
        if now < self._locked_until:
            return
        at = self._cut(first, area, now)
        if at is not None:
            self._locked_until = now + LOCKED_PERIODS * self._period_s
            self._member.notify(sender, Cut(at), context)

    def on_cut(self, sender: int, message: Cut, now: float) -> int | None:
        """A heavy broker has cut its area. Return the point to move to; None if it has not been asked, or long ago."""
        asked, self._asked = self._asked, None
        right = asked is not None and asked[0] == sender and now <= asked[1]
        return message.at if right else None

    def _cut(self, first: int, area: Spans, now: float) -> int | None:
        """The point at which the second half begins; None if the area cannot be cut."""
        ring = 1 << self._member.keys.bits
        if self._by_area:
            return (first + area.size // 2) % ring if area.size > 1 else None
        self.load(now)
        steps = sorted((point - first) % ring for _, point in self._events if point in area)
        beyond = [step for step in steps[len(steps) // 2 :] if step > steps[0]]
        return (first + beyond[0]) % ring if beyond else None
