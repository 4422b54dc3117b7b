"""A subscriber: it subscribes to topics, or to parts of them, and logs its deliveries (that is its application).

After a restart it reads from its log what it had received before.
"""

import time

from nodes.overlay.reliability.dedup import DeliveryRecord
from nodes.runtime.client import Client
from nodes.runtime.log import handed_over


class Subscriber(Client):
    """The subscriber's shell: everything else is in the core's Deliver actions."""

    async def open(self) -> None:
        if self.reliability.custody_from is not None:
            before = handed_over(self.config.log)
            if before is not None:
                now, now_ns = self.now(), time.time_ns()
                self.core.resume(
                    DeliveryRecord(
                        each.message_id, each.topic, each.priority, now - (now_ns - each.t) / 1e9
                    )
                    for each in before
                )
        await super().open()
