"""Subscribers that want areas and levels, with every method: they get exactly those events, once, whatever breaks."""

import pytest

from mesh_network import MeshNetwork
from nodes.overlay import METHODS
from nodes.overlay.methods import TOPIC_METHODS
from nodes.protocol.interests import Interest
from nodes.protocol.regions import Box
from nodes.protocol.wire import REPEATED, Kind, Message

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


def network(method: str, seed: int = 1, **how: object) -> MeshNetwork:
    """Five brokers (a star: one), a sensor at the first, subscribers at all; every node is ready."""
    brokers = 1 if method == "star" else 5
    made = MeshNetwork(method, seed, brokers, parameters={"custody_from": 3, **how}, dimensions=2)
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


class Story:
    """What is published, and which subscribers should have it."""

    def __init__(self, made: MeshNetwork) -> None:
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
def test_everybody_gets_what_lies_in_its_areas_and_is_urgent_enough(method: str) -> None:
    story = Story(made := network(method))
    story.publish_all()
    made.run(20)
    story.check()
    assert made.duplicates == 0
    assert made.taken == set(story.due), "also what nobody wanted is in good hands"
    assert all(len(made.cores[name]._local.pending) == 0 for name in made.alive())


@every_method
def test_without_custody_it_is_the_same(method: str) -> None:
    story = Story(made := network(method))
    story.publish_all(levels=(1, 2))
    made.run(20)
    for identity, due in story.due.items():
        assert made.receivers(identity) == due
    assert made.duplicates == 0


@every_method
@pytest.mark.parametrize("guest", WANTED)
def test_who_was_away_gets_what_it_wanted_meanwhile_and_nothing_else(
    method: str, guest: str
) -> None:
    story = Story(made := network(method))
    story.publish_all()
    made.run(10)
    for link in list(made.links[guest].values()):
        link.whole = False  # no node has noticed yet
    before = set(story.due)
    story.publish_all()
    made.run(1)
    made.passed.clear()
    made.move(guest)
    made.run(30)
    story.check()
    repeated = [
        message.message_id
        for _, receiver, message in made.passed
        if receiver == guest and message.kind is Kind.PUBLISH and message.flags & REPEATED
    ]
    assert not before.intersection(repeated), "it had these"
    assert len(repeated) == len(set(repeated)), "in both of its areas, but sent once"
    assert all(guest in story.due[identity] for identity in repeated)


@methods
@pytest.mark.parametrize("victim", ["b2", "b5"])
def test_when_a_broker_dies_nobody_misses_anything_of_its_area(method: str, victim: str) -> None:
    story = Story(made := network(method))
    for place in PLACES[:4]:
        story.publish("slope", 5, place)
    made.run(0.03)
    made.kill(victim)
    for place in PLACES[4:]:
        story.publish("slope", 4, place)
    made.run(130)
    story.check()
    assert made.taken == set(story.due)


@every_method
def test_an_interest_that_is_taken_back_leaves_others_of_its_topic_alone(method: str) -> None:
    made = network(method)
    home = next(iter(made.links["c5"]))
    gone = Message(Kind.UNSUBSCRIBE, topic=Interest("slope", WEST).text)
    made.act(home, made.cores[home].on_message("c5", gone, made.now))
    made.run(5)
    west, both = (made.publish("s1", n, "slope", 5, (x, 5)) for n, x in ((1, 5), (2, 50)))
    made.run(10)
    assert "c5" not in made.receivers(west)
    assert "c5" in made.receivers(both)
    assert made.delivered["c5", both] == 1
    assert {"c1", "c3"} <= made.receivers(west)
