"""What every publish/subscribe method promises: runs on each registered method."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodes.overlay.methods import TOPIC_METHODS
from nodes.overlay.topics.base import Duplicate, Place, Refuse, Send
from nodes.overlay.topics.keys import Role, topic_key
from nodes.protocol import skipgraph_messages as m
from nodes.protocol.skipgraph_codec import encode
from nodes.protocol.wire import Kind, Message, WireError
from support.overlays.topic_network import TopicNetwork, parameter_sets

METHODS = [(name, each) for name in TOPIC_METHODS for each in parameter_sets(name)]
methods = pytest.mark.parametrize(("method", "parameters"), METHODS)
relay_free_methods = pytest.mark.parametrize(
    ("method", "parameters"), [one for one in METHODS if TOPIC_METHODS[one[0]].relay_free]
)
TOPICS = ["slope", "valley"]
SETTLE_S = 15.0  # after the last node; 7 s are enough for all nodes to find their places


def grown(method: str, parameters: dict[str, str], seed: int, nodes: int = 14) -> TopicNetwork:
    """A quiet network: each node publishes or subscribes to one of two topics, some do both."""
    network = TopicNetwork(method, seed, parameters)
    random = Random(seed)
    for number in range(nodes):
        network.start(number, [0])
        topic = TOPICS[number % 2]
        if number < 2 or random.random() < 0.4:
            network.advertise(number, topic)
        if number in (2, 3) or random.random() < 0.6:
            network.subscribe(number, topic)
        network.run(0.5)
    network.run(SETTLE_S)
    return network


@methods
@pytest.mark.parametrize("seed", range(4))
def test_in_a_settled_network_each_publication_reaches_all_subscribers_once_and_no_other_node(
    method: str, parameters: dict[str, str], seed: int
) -> None:
    network = grown(method, parameters, seed)
    for publisher, topic in sorted(network.advertised):
        identity = network.publish(publisher, topic)
        network.run(3)
        wanted = {number for number, name in network.subscribed if name == topic}
        assert wanted
        assert network.receivers(identity) == wanted
    assert set(network.delivered.values()) == {1}


@relay_free_methods
def test_nodes_do_not_receive_publications_of_topics_they_take_no_part_in(
    method: str, parameters: dict[str, str]
) -> None:
    network = grown(method, parameters, 5)
    for publisher, topic in sorted(network.advertised):
        network.publish(publisher, topic)
        network.run(3)
    for sender, receiver, message in network.publications():
        for node in (sender, receiver):
            assert TOPICS[node % 2] == message.topic, "a relay"


@relay_free_methods
def test_the_subscribers_of_a_topic_are_connected_by_their_own_links_alone(
    method: str, parameters: dict[str, str]
) -> None:
    network = grown(method, parameters, 6)
    for topic in TOPICS:
        members = {number for number, name in network.subscribed if name == topic}
        reached, border = set(), {min(members)}
        while border:
            reached |= border
            peers = [
                network.nodes[number].graph.peer(topic_key(topic, Role.SUBSCRIBER, number))
                for number in border
            ]
            near = {contact.node for peer in peers for contact in peer.neighbours()}
            border = (near & members) - reached
        assert reached == members


@methods
def test_a_publication_that_was_never_advertised_is_refused(
    method: str, parameters: dict[str, str]
) -> None:
    node = TOPIC_METHODS[method](Place(1), parameters, Random(1))
    with pytest.raises(ValueError, match="advertise it first"):
        node.publish(Message(Kind.PUBLISH, topic="slope"), 0.0)


@methods
def test_a_topic_that_cannot_be_a_key_is_refused(method: str, parameters: dict[str, str]) -> None:
    node = TOPIC_METHODS[method](Place(1), parameters, Random(1))
    for call in (node.advertise, node.subscribe):
        with pytest.raises(WireError, match="zero byte"):
            call("a\0b", 0.0)


def test_unknown_parameters_are_refused() -> None:
    for method in TOPIC_METHODS:
        with pytest.raises(ValueError, match="'colour'"):
            TOPIC_METHODS[method](Place(1), {"colour": "red"}, Random(1))
        with pytest.raises(ValueError, match="multicast"):
            TOPIC_METHODS[method](Place(1), {"multicast": "smoke"}, Random(1))


strange = st.one_of(
    st.builds(Message, kind=st.sampled_from(Kind), payload=st.binary(max_size=30)),
    st.builds(
        Message,
        kind=st.just(Kind.PUBLISH),
        topic=st.sampled_from(TOPICS),
        routing=st.binary(max_size=30),
    ),
    st.builds(
        lambda body: Message(Kind.OVERLAY, payload=encode(m.Notify(body))), st.binary(max_size=9)
    ),
)


@methods
@given(messages=st.lists(st.tuples(st.integers(0, 9), strange), max_size=20))
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_random_messages_are_refused_and_change_nothing(
    method: str, parameters: dict[str, str], messages: list[tuple[int, Message]]
) -> None:
    network = TopicNetwork(method, 1, parameters)
    node = network.start(1, [])
    network.advertise(1, "slope")
    for sender, message in messages:
        for action in node.on_message(sender, message, network.now):
            assert isinstance(
                action, Refuse | Send | Duplicate
            )  # some random bytes are a valid message
    network.start(2, [1])
    network.subscribe(2, "slope")
    network.run(60)
    identity = network.publish(1, "slope")
    network.run(20)
    assert network.receivers(identity) == {2}


@methods
def test_the_same_seed_gives_the_same_messages(method: str, parameters: dict[str, str]) -> None:
    one, two = (grown(method, parameters, 7) for _ in range(2))
    assert one.passed == two.passed
