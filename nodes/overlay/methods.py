"""All topic methods between brokers, by name: those of `topics`, and methods built on them."""

from nodes.overlay import topics
from nodes.overlay.collection.node import Collection
from nodes.overlay.topics.base import TopicNodeFactory
from nodes.overlay.zorder_map.node import ZorderMap

TOPIC_METHODS: dict[str, TopicNodeFactory] = {
    **topics.TOPIC_METHODS,
    Collection.method: Collection,
    ZorderMap.method: ZorderMap,
}
