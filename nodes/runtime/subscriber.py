"""A subscriber: it wants topics, or parts of them, and logs what it gets (the application, as far as the testbed goes).

Its log is also its memory: what it had before it was started again, it knows from there.
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
