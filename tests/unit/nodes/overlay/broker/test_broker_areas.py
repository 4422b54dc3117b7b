"""Subscribers that want areas and levels, with every method: they get exactly those events, once, whatever breaks."""

import pytest

from nodes.overlay import METHODS
from nodes.overlay.methods import TOPIC_METHODS
from nodes.protocol.interests import Interest
from nodes.protocol.regions import Box
from nodes.protocol.wire import REPEATED, Kind, Message
from support.overlays.broker_network import BrokerNetwork

BROKERS = [f"b{number}" for number in range(1, 6)]
WEST, EAST = Box((0, 0), (59, 99)), Box((40, 0), (99, 99))  # they overlap
NORTH = Box((0, 80), (99, 99))
WANTED = {
    "c1": [Interest("slope", WEST)],
    "c2": [Interest("slope", EAST, 4), Interest("slope", NORTH)],
    "c3": [Interest("slope")],
    "c4": [Interest("slope", None, 5), Interest("rain", WEST)],
    "c5": [Interest("slope", WEST), Interest("slope", EAST)],
}
PLACES = [(x, y) for x in (5, 40, 59, 60, 95) for y in (10, 79, 80)]
every_method = pytest.mark.parametrize("method", METHODS)
methods = pytest.mark.parametrize("method", TOPIC_METHODS)


def network(method: str, seed: int = 1, **how: object) -> BrokerNetwork:
    """Five brokers (a star: one), a sensor at the first, subscribers at all; every node is ready."""
    brokers = 1 if method == "star" else 5
    made = BrokerNetwork(method, seed, brokers, parameters={"custody_from": 3, **how}, dimensions=2)
    names = BROKERS[:brokers]
    sensor = made.join("s1", 101, [], names)
    made.act("s1", sensor.advertise(["slope", "rain"], 0.0))
    for place, (name, interests) in enumerate(WANTED.items()):
        first = place % brokers
        texts = [interest.text for interest in interests]
        made.join(name, 111 + place, texts, names[first:] + names[:first])
    made.run(30)
    assert all(core.ready for core in made.cores.values())
    return made


class Publications:
    """The publications of a test, and which subscribers should get each."""

    def __init__(self, made: BrokerNetwork) -> None:
        self.made = made
        self.due: dict[int, set[str]] = {}

    def publish(self, topic: str, level: int, place: tuple[int, ...]) -> int:
        message = Message(Kind.PUBLISH, level, topic=topic, place=place)
        identity = self.made.publish("s1", len(self.due) + 1, topic, level, place)
        self.due[identity] = {
            name for name, wanted in WANTED.items() if any(one.wants(message) for one in wanted)
        }
        return identity

    def publish_all(self, levels: tuple[int, ...] = (3, 4, 5)) -> None:
        for number, place in enumerate(PLACES):
            self.publish("slope", levels[number % len(levels)], place)
            self.publish("rain", levels[number % len(levels)], place)
        self.publish("slope", 5, ())  # without a place: only for subscribers without an area

    def check(self) -> None:
        for identity, due in self.due.items():
            assert self.made.receivers(identity) == due
        assert set(self.made.delivered.values()) == {1}


@every_method
def test_subscribers_get_all_events_in_their_areas_and_of_their_levels(method: str) -> None:
    publications = Publications(made := network(method))
    publications.publish_all()
    made.run(20)
    publications.check()
    assert made.duplicates == 0
    assert made.acknowledged == set(publications.due), (
        "publications without subscribers are acknowledged, too"
    )
    assert all(len(made.cores[name]._local.pending) == 0 for name in made.alive())


@every_method
def test_subscribers_get_the_same_events_without_custody(method: str) -> None:
    publications = Publications(made := network(method))
    publications.publish_all(levels=(1, 2))
    made.run(20)
    for identity, due in publications.due.items():
        assert made.receivers(identity) == due
    assert made.duplicates == 0


@every_method
@pytest.mark.parametrize("client", WANTED)
def test_a_subscriber_that_was_away_gets_the_missed_events_of_its_interests_only(
    method: str, client: str
) -> None:
    publications = Publications(made := network(method))
    publications.publish_all()
    made.run(10)
    for link in list(made.links[client].values()):
        link.whole = False  # no node has noticed yet
    before = set(publications.due)
    publications.publish_all()
    made.run(1)
    made.passed.clear()
    made.move(client)
    made.run(30)
    publications.check()
    repeated = [
        message.message_id
        for _, receiver, message in made.passed
        if receiver == client and message.kind is Kind.PUBLISH and message.flags & REPEATED
    ]
    assert not before.intersection(repeated), "the client had these"
    assert len(repeated) == len(set(repeated)), "an event in both areas is sent once"
    assert all(client in publications.due[identity] for identity in repeated)


@methods
@pytest.mark.parametrize("victim", ["b2", "b5"])
def test_no_subscriber_misses_events_of_its_area_when_a_broker_dies(
    method: str, victim: str
) -> None:
    publications = Publications(made := network(method))
    for place in PLACES[:4]:
        publications.publish("slope", 5, place)
    made.run(0.03)
    made.kill(victim)
    for place in PLACES[4:]:
        publications.publish("slope", 4, place)
    made.run(130)
    publications.check()
    assert made.acknowledged == set(publications.due)


@every_method
def test_an_interest_that_is_unsubscribed_leaves_others_of_its_topic_unchanged(method: str) -> None:
    made = network(method)
    broker = next(iter(made.links["c5"]))
    gone = Message(Kind.UNSUBSCRIBE, topic=Interest("slope", WEST).text)
    made.act(broker, made.cores[broker].on_message("c5", gone, made.now))
    made.run(5)
    west, both = (made.publish("s1", n, "slope", 5, (x, 5)) for n, x in ((1, 5), (2, 50)))
    made.run(10)
    assert "c5" not in made.receivers(west)
    assert "c5" in made.receivers(both)
    assert made.delivered["c5", both] == 1
    assert {"c1", "c3"} <= made.receivers(west)
