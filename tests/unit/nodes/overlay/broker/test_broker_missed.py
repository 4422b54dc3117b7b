"""Subscribers that missed a publication get it once, also when the broker that published it is gone."""

import pytest

from nodes.overlay.methods import TOPIC_METHODS
from support.overlays.broker_network import BrokerNetwork

BROKERS = [f"b{number}" for number in range(1, 7)]
TOPIC = "slope"
QUIET_S = 140.0

methods = pytest.mark.parametrize("method", sorted(TOPIC_METHODS))


def settled_network(method: str, seed: int) -> BrokerNetwork:
    """A sensor at b4 whose next broker is b5, a subscriber at b1 and one at b6."""
    made = BrokerNetwork(method, seed, len(BROKERS))
    sensor = made.join("s1", 101, [], ["b4", "b5"])
    made.act("s1", sensor.advertise([TOPIC], 0.0))
    made.join("c1", 111, [TOPIC], ["b1"])
    made.join("c2", 112, [TOPIC], ["b6"])
    made.run(30)
    assert all(core.ready for core in made.cores.values())
    return made


def publish_while_b6_is_cut_off(made: BrokerNetwork) -> int:
    """Publish to all other brokers, then stop the sensor's broker: only the sensor's next broker retains it for b6."""
    made.isolate("b6")
    made.run(20)
    identity = made.publish("s1", 1, TOPIC)
    made.run(20)
    assert made.acknowledged == {identity}
    assert made.receivers(identity) == {"c1"}
    made.kill("b4")
    made.run(5)
    return identity


@methods
@pytest.mark.parametrize("seed", [1, 3, 4])
def test_a_subscriber_that_was_cut_off_gets_missed_publications_from_the_sensors_next_broker(
    method: str, seed: int
) -> None:
    made = settled_network(method, seed)
    identity = publish_while_b6_is_cut_off(made)
    for name in ("b1", "b2", "b3"):  # any of them may be the root, or have forwarded it
        made.kill(name)
        made.start(name)
    made.isolated.clear()
    made.run(QUIET_S)
    assert made.receivers(identity) == {"c1", "c2"}
    assert set(made.delivered.values()) == {1}


@methods
def test_a_client_that_missed_nothing_does_not_hide_what_others_at_its_broker_missed(
    method: str,
) -> None:
    made = settled_network(method, 1)
    identity = publish_while_b6_is_cut_off(made)
    made.move("c1", "b6")
    made.run(1)
    made.isolated.clear()
    made.run(QUIET_S)
    assert made.receivers(identity) == {"c1", "c2"}
    assert set(made.delivered.values()) == {1}


@methods
@pytest.mark.parametrize(("seed", "loser"), [(2, "b5"), (4, "b3")])
def test_a_broker_that_was_unreachable_without_noticing_is_notified_and_asks(
    method: str, seed: int, loser: str
) -> None:
    """For a moment one broker cannot reach b6, which is back before b6 itself finds out."""
    made = settled_network(method, seed)
    for number in (2, 3, 5):
        made.join(f"d{number}", 120 + number, [TOPIC], [f"b{number}"])
    made.run(30)
    identity = made.publish("s1", 1, TOPIC)
    made.isolated.add("b6")
    if (link := made.links[loser].pop("b6", None)) is not None:
        link.whole = False
        made.act(loser, made.cores[loser].on_link_down("b6", made.now))
    made.run(0.25)
    made.isolated.clear()
    made.run(QUIET_S)
    assert made.receivers(identity) == {"c1", "c2", "d2", "d3", "d5"}
    assert set(made.delivered.values()) == {1}
    assert made.acknowledged == {identity}


@methods
def test_a_broker_that_leaves_as_soon_as_it_is_found_again_loses_nothing(method: str) -> None:
    made = settled_network(method, 1)
    made.isolate("b4")
    made.run(20)
    identity = made.publish("s1", 1, TOPIC)
    made.run(1)
    made.isolated.clear()
    while not made.links["b4"].keys() & set(BROKERS):
        made.run(0.1)
    made.leave("b4")
    made.run(QUIET_S)
    assert made.receivers(identity) == {"c1", "c2"}
    assert set(made.delivered.values()) == {1}
    assert made.acknowledged == {identity}
    assert made.cores["b4"].left
