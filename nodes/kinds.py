"""The kinds of nodes there are: one list for topologies, node.json and the nodes themselves."""

from enum import StrEnum


class NodeKind(StrEnum):
    """What a node does."""

    BROKER = "broker"
    SENSOR = "sensor"
    SUBSCRIBER = "subscriber"
