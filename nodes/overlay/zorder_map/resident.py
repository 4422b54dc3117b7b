"""A broker that stands on the map: the parts it is made of, its area and its moves, and the words that it hears.

A broker that moves inserts its new key, and then takes the old one out: it stands in the ring all the time. It does one
move at a time.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.interests import parse
from nodes.overlay.tbps.base import Advertised, Asked, Place
from nodes.overlay.zorder_map import words
from nodes.overlay.zorder_map.areas import Areas
from nodes.overlay.zorder_map.ground import Ground
from nodes.overlay.zorder_map.holdings import Holdings
from nodes.overlay.zorder_map.levelling import Levelling
from nodes.overlay.zorder_map.member import Handlers, Member
from nodes.overlay.zorder_map.registering import Registering
from nodes.overlay.zorder_map.registry import Registry
from nodes.overlay.zorder_map.settings import Settings
from nodes.overlay.zorder_map.traffic import Traffic
from nodes.overlay.zorder_map.walks import Walks

SOON_S = 5.0  # after a change, interests are said again
FORGET_AFTER = 3  # renewals without a word


class Resident(Member):
    """What a broker is and hears; when it does what is the affair of the whole (`node`)."""

    method = "zorder-map"

    def __init__(self, place: Place, parameters: Mapping[str, Any], random: Random) -> None:
        settings = Settings.of(self.method, parameters)
        super().__init__(place, settings, random)
        self._period_s, self._renew_s = settings.period_s, settings.renew_s
        start = self.keys.first_start(place.number, settings.start)
        self._first_key = self.keys.key(start, place.number)
        ground = Ground(self.keys, settings.stretches)
        self.registry = Registry(ground, FORGET_AFTER * settings.renew_s)
        areas = Areas(self.keys, self.graph)
        self.holdings = Holdings(
            self.graph,
            areas,
            self.registry,
            settings.recover_s,
            place.watched,
            self._next_number,
            self._tell,
            lambda spans: self._say_to_all(words.RollCall(spans)),
            self._do,
        )
        self.own = Registering(place.number, ground, self._next_number, self._carry, self._do)
        self._walks = Walks(self.holdings, self.registry, self._carry, self._tell)
        self._levelling = Levelling(
            place.number,
            settings,
            self.keys.bits,
            random,
            lambda: len(self.registry),
            self._neighbours,
            self._tell,
            lambda: self._may_move,
            self._begin_move,
        )
        self._traffic = Traffic(
            place.number,
            ground,
            areas,
            self.holdings,
            self.registry,
            self.own,
            lambda: self._next_number() & 0xFFFFFFFF,
            lambda point: self._levelling.served(point, self._now),
            self._do,
        )
        self._handlers = self._hearing()
        self._advertised: set[str] = set()
        self._confirmed: set[str] = set()  # of these
        self._begun = False
        self._leaving = False
        self._farewells = 0
        self._restless = False  # the map may have changed
        self._tick_at: float | None = None
        self._renew_pause = self._renew_s
        self._renew_at: float | None = None

    def _renew_soon(self) -> None:
        """Something has changed: others may not know any more what is wanted here."""
        self._renew_pause = min(SOON_S, self._renew_s)
        at = self._now + self._wavering(self._renew_pause)
        self._renew_at = at if self._renew_at is None else min(at, self._renew_at)

    # Areas

    @property
    def _may_move(self) -> bool:
        return self.graph.stands and len(self.graph.own_keys()) == 1 and not self._leaving

    def _begin_move(self, point: int) -> None:
        if self._may_move:
            self._act(self.graph.insert(self.keys.key(point, self.number), self._now))

    def _on_inserted(self, key: bytes) -> None:
        """The newest key is the one that counts; those from before a move go."""
        for other in self.graph.own_keys():
            if other != key:
                self._act(self.graph.remove(other, self._now))
        self.own.begin()
        self._confirm()

    def _on_moved(self) -> None:
        self.holdings.settle(self._now)
        self._restless = True

    def _on_restored(self) -> None:
        self._renew_soon()

    def _confirm(self) -> None:
        if self.graph.stands:
            for topic in sorted(self._advertised - self._confirmed):
                self._confirmed.add(topic)
                self._out.append(Advertised(topic))

    # Words

    def _hearing(self) -> Handlers:
        holdings, levelling = self.holdings, self._levelling
        return {
            words.Register: lambda _, word: self._walks.on_register(word, self._now),
            words.Registered: lambda _, word: self.own.on_registered(word),
            words.Handover: self._on_handover,
            words.Received: lambda sender, word: holdings.on_received(sender, word.ticket),
            words.Want: holdings.on_want,
            words.Patience: self._on_patience,
            words.RollCall: lambda _, word: self.own.on_roll_call(word.spans),
            words.Forget: lambda sender, word: self.registry.forget_before(sender, word.version),
            words.Question: self._on_question,
            words.Sample: lambda _, word: levelling.on_sample(word, self._now),
            words.Load: lambda sender, word: levelling.on_load(sender, word, self._now),
            words.Relieve: lambda _, word: levelling.on_relieve(word, self._now),
            words.Offer: self._on_offer,
            words.Cut: lambda sender, word: levelling.on_cut(sender, word, self._now),
        }

    def _on_handover(self, sender: int, word: words.Handover) -> None:
        self.holdings.on_handover(sender, word, self._now)
        self._restless = True

    def _on_patience(self, sender: int, word: words.Patience) -> None:
        self.holdings.on_patience(sender, word, self._now)
        self._restless = True

    def _on_offer(self, sender: int, _: words.Offer) -> None:
        if self._may_move:
            first = self.keys.start(self.graph.own_keys()[0])
            self._levelling.on_offer(sender, first, self.holdings.served, self._now)

    def _on_question(self, sender: int, word: words.Question) -> None:
        if sender != self.number and parse(word.text).topic in self._advertised:
            self._out.append(Asked(sender, word.text, word.words))
