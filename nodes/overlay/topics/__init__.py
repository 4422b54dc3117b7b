"""Topic-based publish/subscribe between brokers, in several methods with one interface (`base.TopicNode`).

A new method is one class and one line here; the conformance suite in `tests/unit/nodes/overlay/topics` then runs on it.
Methods on topic keys choose their parts (`method.SkipGraphMethod`): `membership`, `stop_go`, `forwarding`,
`participants`.
"""

from nodes.overlay.topics.atm import AtmTbps
from nodes.overlay.topics.base import TopicNodeFactory
from nodes.overlay.topics.fan import FanTbps
from nodes.overlay.topics.patm import PatmTbps
from nodes.overlay.topics.psg import PsgTbps
from nodes.overlay.topics.scribe.node import Scribe
from nodes.overlay.topics.sg import SgTbps

TOPIC_METHODS: dict[str, TopicNodeFactory] = {
    SgTbps.method: SgTbps,
    PsgTbps.method: PsgTbps,
    AtmTbps.method: AtmTbps,
    PatmTbps.method: PatmTbps,
    FanTbps.method: FanTbps,
    Scribe.method: Scribe,
}
