"""All topic methods between brokers, by name: those of `tbps`, and others that stand on them."""

from nodes.overlay import tbps
from nodes.overlay.collection.node import Collection
from nodes.overlay.tbps.base import TopicNodeFactory
from nodes.overlay.zorder_map.node import ZorderMap

TOPIC_METHODS: dict[str, TopicNodeFactory] = {
    **tbps.TOPIC_METHODS,
    Collection.method: Collection,
    ZorderMap.method: ZorderMap,
}
