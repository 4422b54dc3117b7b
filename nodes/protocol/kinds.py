"""The kinds of nodes: one list for topologies, node.json and the nodes themselves."""

from enum import StrEnum


class NodeKind(StrEnum):
    """What a node does."""

    BROKER = "broker"
    SENSOR = "sensor"
    SUBSCRIBER = "subscriber"
    ROUTER = "router"  # shares its link among the nodes behind it; runs no program
    EXTERNAL = "external"  # runs a program that is not ours


OURS = (NodeKind.BROKER, NodeKind.SENSOR, NodeKind.SUBSCRIBER)  # run the program in this package
EDGE = (NodeKind.SENSOR, NodeKind.SUBSCRIBER)  # have one link, to a broker
