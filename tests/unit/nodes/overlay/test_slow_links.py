"""Links on which messages take seconds: no slow node is taken for dead, and no message with custody is lost."""

from itertools import combinations

import pytest

from nodes.overlay.methods import TOPIC_METHODS
from nodes.protocol.wire import Kind
from support.overlays.broker_network import BrokerNetwork

BROKERS = [f"b{number}" for number in range(1, 6)]
SLOW_S = 5.0
methods = pytest.mark.parametrize("method", TOPIC_METHODS)
stopping = pytest.mark.parametrize(
    "method", [name for name, method in TOPIC_METHODS.items() if method.stops]
)


def network(method: str, slow: list[str], **how: object) -> BrokerNetwork:
    """A sensor at b1, subscribers at b3 and b5; all links between these brokers and others are slow from the start."""
    made = BrokerNetwork(method, 1, len(BROKERS), parameters=how)
    for pair in combinations(BROKERS, 2):
        if set(pair) & set(slow):
            made.slow[frozenset(pair)] = SLOW_S
    made.act("s1", made.join("s1", 101, [], ["b1"]).advertise(["slope"], 0.0))
    for number, (name, broker) in enumerate({"c1": "b3", "c2": "b5"}.items(), 111):
        made.join(name, number, ["slope"], [broker])
    made.run(180)
    return made


def events(made: BrokerNetwork, event: str) -> list[str]:
    """The brokers that logged this event."""
    return [name for name, note in made.notes if note.event == event]


def suspected(made: BrokerNetwork) -> list[int]:
    """The nodes that any broker takes for dead."""
    return [
        number for name in made.alive() for number in made.cores[name]._node.describe()["suspects"]
    ]


@methods
@pytest.mark.parametrize("slow", [["b1"], ["b3", "b4"]], ids=" ".join)
def test_no_broker_is_taken_for_dead_while_links_are_slow_and_clients_join(
    method: str, slow: list[str]
) -> None:
    made = network(method, slow)
    assert all(core.ready for core in made.cores.values())
    made.notes.clear()
    published = []
    for counter in range(1, 21):
        published.append(made.publish("s1", counter, "slope"))
        if counter % 5 == 0:  # keys are inserted, and their neighbours check their own neighbours
            made.join(f"c{counter}", 200 + counter, ["slope", "valley"], [BROKERS[counter % 4]])
        made.run(3)
        assert suspected(made) == []
    made.run(60)
    assert events(made, "withheld") == []
    assert events(made, "lost-peer") == []
    assert all(made.receivers(identity) >= {"c1", "c2"} for identity in published)
    assert made.acknowledged == set(published)
    assert set(made.delivered.values()) == {1}


@stopping
def test_the_first_subscriber_misses_nothing_when_control_messages_outlast_the_hold_time(
    method: str,
) -> None:
    made = network(method, ["b1"], hold_s=2)
    made.join("s2", 102, [], ["b1"])
    made.act("s2", made.cores["s2"].advertise(["valley"], made.now))
    made.run(60)
    made.join("c9", 119, ["valley"], ["b4"])
    while "valley" not in made.cores["c9"]._confirmed:
        made.run(0.1)
    identity = made.publish("s2", 1, "valley")
    made.run(120)
    assert made.receivers(identity) == {"c9"}
    assert identity in made.acknowledged


@methods
def test_a_broker_that_is_silent_to_its_neighbours_is_dead_only_when_it_cannot_be_reached(
    method: str,
) -> None:
    made = network(method, [])
    made.passed.clear()
    made.kill("b3")
    made.run(60)
    assert set(events(made, "lost-peer")) >= {"b1"}
    asked = [(sender, to) for sender, to, message in made.passed if message.kind is Kind.HEARTBEAT]
    assert any(to == "b3" for _, to in asked)
    identity = made.publish("s1", 1, "slope")
    made.run(10)
    assert made.receivers(identity) == {"c2"}
