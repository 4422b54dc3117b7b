"""Keys of topics: each topic is one stretch of the key order, its publishers first, then its subscribers (Banno 2013).

    topic in UTF-8, a zero byte, the role (0 publisher, 1 subscriber), the number of the node in 4 bytes

A topic has no zero byte, so no stretch lies inside another's.
"""

from enum import IntEnum

from nodes.protocol.wire import WireError, encode_topic


class Role(IntEnum):
    """The role of a node in a topic. A node with both roles is a subscriber, and publishes from there."""

    PUBLISHER = 0
    SUBSCRIBER = 1


def topic_key(topic: str, role: Role, number: int) -> bytes:
    """The key of this node."""
    return edge(topic, role) + number.to_bytes(4)


def edge(topic: str, role: int) -> bytes:
    """Where the keys of this role begin; of role 2: where the topic's stretch ends."""
    name = encode_topic(topic)
    if b"\0" in name:
        raise WireError(f"topic {topic!r} has a zero byte, which ends topics in keys")
    return name + bytes([0, role])


def stands_in(key: bytes, topic: str, role: Role) -> bool:
    """Whether the key is one of this topic and role."""
    return edge(topic, role) <= key < edge(topic, role + 1)


def topic_of(key: bytes) -> str:
    """The topic of a key that `topic_key` made."""
    return key.partition(b"\0")[0].decode()


def node_of(key: bytes) -> int:
    """The number of the node that has a key that `topic_key` made."""
    return int.from_bytes(key[-4:])
