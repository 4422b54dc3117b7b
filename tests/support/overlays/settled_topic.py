"""One topic whose nodes have found their places, and the same topic as converged overlays compute it."""

from typing import Any

import numpy as np

from nodes.overlay.topics.keys import Role, topic_key
from nodes.protocol.skipgraph_codec import with_publication
from support.overlays.topic_network import TopicNetwork
from testbed.converged.graph import converge
from testbed.converged.multicast import Distances, Strategy, distances
from testbed.converged.population import Population

TOPIC = "slope"
SETTLE_S = 15.0  # after the last node; 7 s are enough for all nodes to find their places
TICK = 0.02  # every message takes this long, so the first copy to arrive took the fewest hops


def settled_topic(
    method: str, publishers: int, subscribers: int, seed: int = 1, **parameters: Any
) -> TopicNetwork:
    """Publishers 0 to P - 1, then the subscribers; no node joins or leaves any more."""
    network = TopicNetwork(method, seed, parameters, fastest=TICK, slowest=TICK)
    for number in range(publishers + subscribers):
        network.start(number, [0])
        (network.advertise if number < publishers else network.subscribe)(number, TOPIC)
        network.run(0.5)
    network.run(SETTLE_S)
    network.passed.clear()
    return network


def follow(network: TopicNetwork, publisher: int, priority: int = 1) -> tuple[dict[int, int], int]:
    """Publish once; return the hops to each receiver, and how many messages brought it nearer to a subscriber.

    Messages to keys before the first subscriber that a publisher knows do not count. Only the last publisher can know
    that no subscriber is there, so the others send them to make sure.
    """
    before = len(network.publications())
    identity = network.publish(publisher, TOPIC, priority)
    network.run(0.5)
    hops = {node: hops for (node, message), hops in network.hops.items() if message == identity}
    sent = (with_publication(message) for _, _, message in network.publications()[before:])
    keys = [topic_key(TOPIC, Role.SUBSCRIBER, node) for node in hops]
    return hops, sum(any(part.low <= key < part.high for key in keys) for part in sent)


def computed(network: TopicNetwork, publishers: int) -> Distances:
    """Distances that the converged overlay computes for the same keys and vectors."""
    size = len(network.nodes)
    roles = [Role.PUBLISHER if number < publishers else Role.SUBSCRIBER for number in range(size)]
    peers = [
        network.nodes[number].graph.peer(topic_key(TOPIC, role, number))
        for number, role in enumerate(roles)
    ]
    vectors = np.array([peer.me.vector for peer in peers], dtype=np.uint64)
    participants = Population(
        1, publishers, size - publishers, np.arange(size, dtype=np.int32), vectors
    )
    links = converge(participants.owners, participants.vectors)
    return distances(participants, links, slice(0, 1), {Strategy.SPLIT, Strategy.FLOOD})
