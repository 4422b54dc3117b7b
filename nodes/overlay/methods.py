"""All topic methods between brokers, by name.

A new method is one class and one line here, or an entry point of another package (docs/dev/add-an-overlay-method.md);
the conformance suite in `tests/unit/nodes/overlay/topics` then runs on it.
"""

from nodes.overlay.collection.node import Collection
from nodes.overlay.topics.atm import AtmTbps
from nodes.overlay.topics.base import TopicNodeFactory
from nodes.overlay.topics.fan import FanTbps
from nodes.overlay.topics.patm import PatmTbps
from nodes.overlay.topics.psg import PsgTbps
from nodes.overlay.topics.scribe.node import Scribe
from nodes.overlay.topics.sg import SgTbps
from nodes.overlay.zorder_map.node import ZorderMap
from nodes.plugins import OVERLAYS, Registry

OWN = (SgTbps, PsgTbps, AtmTbps, PatmTbps, FanTbps, Scribe, Collection, ZorderMap)
TOPIC_METHODS: Registry[TopicNodeFactory] = Registry(
    OVERLAYS, {method.method: method for method in OWN}
)
