"""What was published lately, with custody: for those who missed it. Bounded in time and in bytes."""

from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

from nodes.overlay.reliability.digest import Digest
from nodes.protocol.interests import Interest
from nodes.protocol.wire import REPEATED, Message

MAX_BYTES = 32 << 20
OVERHEAD = 500  # bytes of a publication in memory besides its payload


class _Kept(NamedTuple):
    since: float
    message: Message
    own: bool


class Memory:
    """Publications by id; those that are remembered longest go first."""

    def __init__(self, retain_s: float, max_bytes: int = MAX_BYTES) -> None:
        self._retain_s = retain_s
        self._max_bytes = max_bytes
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def remember(self, message: Message, now: float, own: bool = False) -> None:
        """Keep it; what is known already keeps its time. `own`: one of the own guests publishes it."""
        if message.message_id not in self._kept:
            kept = replace(message, routing=b"", flags=message.flags | REPEATED)
            self._kept[message.message_id] = _Kept(now, kept, own)
            self.bytes += _size(message)
        self._forget(now)

    def missing(self, interest: Interest, there: Digest, now: float) -> list[Message]:
        """Of what is wanted, all that is not there; as it is sent to those who have missed it."""
        self._forget(now)
        return [
            kept.message.forwarded()
            for identity, kept in self._kept.items()
            if interest.wants(kept.message) and identity not in there
        ]

    def ids(self, interest: Interest, now: float) -> list[int]:
        """What is remembered of what is wanted, the newest first."""
        self._forget(now)
        kept = reversed(self._kept.items())
        return [identity for identity, one in kept if interest.wants(one.message)]

    def published_since(self, moment: float, now: float) -> list[Message]:
        """What own guests have published since then, as it is published again."""
        self._forget(now)
        kept = [one.message for one in self._kept.values() if one.own and one.since >= moment]
        return [replace(one.forwarded(), flags=one.flags & ~REPEATED) for one in kept]

    def _forget(self, now: float) -> None:
        while self._kept:
            identity, oldest = next(iter(self._kept.items()))
            if oldest.since + self._retain_s > now and self.bytes <= self._max_bytes:
                return
            del self._kept[identity]
            self.bytes -= _size(oldest.message)


def _size(message: Message) -> int:
    return len(message.payload) + OVERHEAD
