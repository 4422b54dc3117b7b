"""Topic-based publish/subscribe between brokers, in several methods with one interface (`base.TopicNode`).

A new method is one class and one line here; the conformance suite in `tests/unit/overlay` then runs on it.
"""

from nodes.overlay.tbps.atm import AtmTbps
from nodes.overlay.tbps.base import TopicNodeFactory
from nodes.overlay.tbps.fan import FanTbps
from nodes.overlay.tbps.patm import PatmTbps
from nodes.overlay.tbps.psg import PsgTbps
from nodes.overlay.tbps.scribe import Scribe
from nodes.overlay.tbps.sg import SgTbps

TOPIC_METHODS: dict[str, TopicNodeFactory] = {
    SgTbps.method: SgTbps,
    PsgTbps.method: PsgTbps,
    AtmTbps.method: AtmTbps,
    PatmTbps.method: PatmTbps,
    FanTbps.method: FanTbps,
    Scribe.method: Scribe,
}
