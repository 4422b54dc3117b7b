"""Areas of a map as they are drawn: how much of it each broker looks after, and where a publication is matched."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodes.overlay.tbps.base import TopicNode
from nodes.overlay.zorder_map.ground import Ground
from nodes.overlay.zorder_map.node import ZorderMap
from nodes.overlay.zorder_map.words import Toward, course_of
from nodes.wire import Message


@dataclass(frozen=True, slots=True)
class Area:
    """Of one broker."""

    share: float  # of the map
    matches: tuple[str, ...]  # "place", "home": which of the publication's points lie in it


def toward(node: TopicNode, publication: Message) -> str:
    """Where a publication goes that leaves this node: "place", "home", "subscriber"; "" where there is no map."""
    return course_of(publication).toward.name.lower() if isinstance(node, ZorderMap) else ""


def areas_of(nodes: Mapping[int, TopicNode], publication: Message) -> dict[int, Area]:
    """By number; none if the nodes have no areas."""
    found = {}
    for number, node in nodes.items():
        if isinstance(node, ZorderMap):
            ground, served = Ground(node.keys, most=1), node.holdings.served
            points = [Toward.PLACE, Toward.HOME] if publication.place else [Toward.HOME]
            matches = (
                point.name.lower() for point in points if ground.point(publication, point) in served
            )
            found[number] = Area(served.size / (1 << node.keys.bits), tuple(matches))
    return found
