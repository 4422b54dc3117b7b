"""The Z-order map: moving areas lose and duplicate nothing, load is levelled, and the map recovers from a crash."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.base import Restored
from nodes.overlay.zorder_map.keys import Keys
from nodes.overlay.zorder_map.settings import Settings
from nodes.parameters import ParameterError
from nodes.protocol.interests import Interest
from nodes.protocol.wire import CUSTODY, Message
from nodes.protocol.zorder_map_messages import Toward, routing_section
from support.overlays.map_network import ALL_CELLS, Cell, MapNetwork, box_of, known_by, point_of

BROKERS = 10
WHOLE = Interest("slope", box_of((0, 0), (7, 7))).text
CORNER = Interest("slope", box_of((0, 0), (1, 1))).text


def settled_map(seed: int, brokers: int = BROKERS, **parameters: object) -> MapNetwork:
    """A quiet network of brokers that have joined each other."""
    network = MapNetwork(seed, parameters)
    for number in range(brokers):
        network.start(number, [0])
        network.run(0.3)
    network.run(20)
    return network


def ways(network: MapNetwork, message: Message) -> Counter[Toward]:
    """How often a publication was sent, by what each copy was sent for (`toward`)."""
    sent = [each for _, _, each in network.publications() if each.message_id == message.message_id]
    return Counter(routing_section(each).toward for each in sent)


def test_each_point_is_served_by_the_broker_whose_area_begins_last_before_it() -> None:
    network = settled_map(1)
    keys = Keys(2)
    starts = sorted((keys.first_start(number, "even"), number) for number in network.nodes)
    for point, servers in network.servers().items():
        before = [number for start, number in starts if start <= point]
        assert servers == [before[-1] if before else starts[-1][1]]


@given(st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
def test_areas_of_brokers_that_know_nothing_of_each_other_begin_at_different_points(
    numbers: set[int],
) -> None:
    keys = Keys(2)
    for how in ("even", "hash"):
        assert len({keys.first_start(number, how) for number in numbers}) == len(numbers)


def test_brokers_with_numbers_in_a_row_share_the_space_evenly() -> None:
    keys = Keys(2)
    starts = sorted(keys.first_start(number, "even") for number in range(1, 65))
    areas = [right - left for left, right in pairwise(starts)]
    assert max(areas) <= 2 * min(areas)


def test_a_publication_goes_to_its_place_its_topics_home_and_once_to_each_subscriber() -> None:
    network = settled_map(2)
    for number in (2, 3, 5):
        network.subscribe(number, WHOLE)
    network.subscribe(7, "slope")
    network.subscribe(8, Interest("slope", box_of((6, 6), (7, 7))).text)
    network.subscribe(9, Interest("slope", None, 5).text)
    network.run(5)
    message = network.publish_at(4, "slope", (1, 1), 3)
    network.run(3)
    assert network.receivers(message.message_id) == {2, 3, 5, 7}
    assert set(network.delivered.values()) == {1}
    assert ways(network, message)[Toward.SUBSCRIBER] <= 4
    nowhere = network.publish_at(4, "slope", None, 5)
    network.run(3)
    assert network.receivers(nowhere.message_id) == {7, 9}
    assert Toward.PLACE not in ways(network, nowhere)


def test_a_small_area_is_known_to_few_brokers_and_everything_to_all_whose_areas_it_meets() -> None:
    network = settled_map(3)
    network.subscribe(2, CORNER)
    network.subscribe(3, WHOLE)
    network.run(5)
    knowing = Counter(text for node in network.nodes.values() for _, text in known_by(node))
    assert knowing[WHOLE] == BROKERS
    assert knowing[CORNER] < BROKERS / 2


@pytest.mark.parametrize("slowest", [0.05, 0.8])
def test_a_hundred_moves_while_events_are_published_lose_and_double_nothing(slowest: float) -> None:
    network = settled_map(4)
    for number in range(0, BROKERS, 2):
        network.subscribe(number, WHOLE)
    network.subscribe(1, CORNER)
    network.subscribe(3, "slope")
    network.run(10)
    network.slowest = slowest
    random = Random(4)
    expected = {}
    for _ in range(100):
        network.move(random.randrange(BROKERS), random.choice(ALL_CELLS))
        for _ in range(5):
            message = network.publish_at(
                random.randrange(BROKERS), "slope", random.choice(ALL_CELLS), random.randint(1, 5)
            )
            expected[message.message_id] = network.wanting(message)
            network.run(random.uniform(0, 0.4))
    network.run(30)
    nodes = network.nodes.values()
    assert sum(node.graph.own_keys() != [node.first_key] for node in nodes) > BROKERS / 2
    assert {identity: network.receivers(identity) for identity in expected} == expected
    assert set(network.delivered.values()) == {1}
    assert network.most_servers == 1
    assert not [action for _, action in network.reported if isinstance(action, Restored)]


def spread(cells: list[Cell], network: MapNetwork, rounds: int, seed: int) -> dict[int, set[int]]:
    """Publish at these cells for a while; return the subscribers that should get each event."""
    random = Random(seed)
    expected = {}
    for _ in range(rounds):
        message = network.publish_at(random.randrange(BROKERS), "slope", random.choice(cells))
        expected[message.message_id] = network.wanting(message)
        network.run(0.1)
    return expected


@pytest.mark.parametrize("cut", ["load", "area"])
def test_levelling_brings_brokers_to_where_events_happen_and_loses_nothing(cut: str) -> None:
    hot = [cell for cell in ALL_CELLS if cell[0] < 2 and cell[1] < 2]  # all in one broker's area
    network = settled_map(5, level_s=5, cut=cut)
    for number in range(BROKERS):
        network.subscribe(number, WHOLE)
    network.run(5)

    def busiest(rounds: int, seed: int) -> float:
        """The share of events that the busiest broker matches."""
        before = len(network.publications())
        expected = spread(hot, network, rounds, seed)
        network.run(10)
        assert {identity: network.receivers(identity) for identity in expected} == expected
        matched = Counter(
            {
                (sender, message.message_id)
                for sender, _, message in network.publications()[before:]
                if routing_section(message).toward is Toward.SUBSCRIBER
            }
        )
        by_broker = Counter(sender for sender, _ in matched)
        return max(by_broker.values()) / rounds

    assert busiest(20, 1) == 1
    spread(hot, network, 600, 2)
    assert busiest(100, 3) < 0.6
    assert set(network.delivered.values()) == {1}


def test_without_levelling_no_broker_moves() -> None:
    network = settled_map(6, level_s=0)
    network.subscribe(1, WHOLE)
    network.run(3)
    spread([(1, 1)], network, 50, 1)
    network.run(60)
    assert all(node.graph.own_keys() == [node.first_key] for node in network.nodes.values())


def test_a_broker_whose_area_cannot_be_cut_keeps_it() -> None:
    network = settled_map(7, level_s=5)
    for number in range(BROKERS):
        network.subscribe(number, WHOLE)
    network.run(3)
    expected = spread([(1, 1)], network, 300, 1)
    network.run(10)
    assert all(node.graph.own_keys() == [node.first_key] for node in network.nodes.values())
    assert {identity: network.receivers(identity) for identity in expected} == expected


def test_the_heir_of_a_crashed_owner_learns_the_interests_of_its_area_again() -> None:
    network = settled_map(8)
    for number in (2, 3):
        network.subscribe(number, WHOLE)
        network.subscribe(number, "slope")
    network.run(5)
    victims = [number for number in network.nodes if number not in (0, 2, 3)][::2]
    for victim in victims:
        network.crash(victim)
    network.run(40)
    assert {len(servers) for servers in network.servers().values()} == {1}
    assert network.unknown() == []
    for cell in (None, (0, 0), (3, 5), (7, 7)):
        message = network.publish_at(0, "slope", cell)
        network.run(2)
        assert network.receivers(message.message_id) == {2, 3}
    assert set(network.delivered.values()) == {1}


def test_a_restarted_broker_is_not_sent_events_of_its_earlier_interests() -> None:
    network = settled_map(9)
    network.subscribe(4, WHOLE)
    network.run(5)
    network.crash(4)
    network.start(4, [0])
    network.run(20)
    for cell in [*ALL_CELLS, *ALL_CELLS]:
        network.publish_at(1, "slope", cell)
        network.run(0.5)
    again = [network.publish_at(1, "slope", cell) for cell in ALL_CELLS]
    network.run(3)
    assert not any(ways(network, message)[Toward.SUBSCRIBER] for message in again)


def test_events_for_an_area_in_recovery_are_held_and_the_most_urgent_goes_first() -> None:
    network = settled_map(10, recover_s=8)
    network.subscribe(2, WHOLE)
    network.run(5)
    (victim,) = network.servers()[point_of((3, 3))]
    assert victim not in (0, 1, 2)
    network.crash(victim)
    network.run(6)
    sent = [network.publish_at(1, "slope", (3, 3), level, CUSTODY) for level in (3, 5, 4)]
    network.run(0.5)
    ids = [message.message_id for message in sent]
    assert any(node.holds(ids[0]) for node in network.nodes.values())
    assert not network.delivered
    network.passed.clear()
    network.run(12)
    assert all(network.receivers(identity) == {2} for identity in ids)
    order = [
        message.priority
        for _, _, message in network.publications()
        if routing_section(message).toward is Toward.SUBSCRIBER
    ]
    assert order == sorted(order, reverse=True) == [5, 4, 3]


def test_wrong_parameters_are_refused() -> None:
    for wrong in ({"k": 0}, {"e": -1}, {"level_s": "often"}, {"dimensions": 9}, {"cut": "half"}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            Settings.of("zorder-map", wrong)
    assert Settings.of("zorder-map", {}) == Settings()
