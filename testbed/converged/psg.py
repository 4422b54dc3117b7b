"""PSG-TBPS on converged topics: several nodes search for the subscribers at once (Kita 2025, 5.3)."""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops
from testbed.converged.supports import NO_START, Starts

_FAR = 254  # hops to whoever does not start; one more still fits a byte


def psg_paths(hops: Hops, starts: Starts) -> Hops:
    """Hops to each subscriber by the start node that is first, `paths[topic, publisher, subscriber]`.

    `hops[topic, from, subscriber]`. The publisher begins at once, the others one hop later.
    """
    topics, size, subscribers = hops.shape
    nobody = np.full((topics, 1, subscribers), _FAR, dtype=np.uint8)
    rows = np.concatenate([hops, nobody], axis=1).reshape(-1, subscribers)
    peer = (
        np.where(starts == NO_START, size, starts) + (size + 1) * np.arange(topics)[:, None, None]
    )
    first: Hops = rows[peer[..., 0]]
    if starts.shape[-1] == 1:
        return first
    soonest: Hops = rows[peer[..., 1]]
    for number in range(2, starts.shape[-1]):
        np.minimum(soonest, rows[peer[..., number]], out=soonest)
    np.minimum(first, soonest + np.uint8(1), out=first)
    return first


def psg_messages(messages: NDArray[np.int64], starts: Starts) -> NDArray[np.int64]:
    """Messages of each publication: what each start node's multicast sends, and one to each but the publisher.

    `messages[topic, start]`. The start nodes know nothing of each other, so nothing is suppressed between them.
    """
    flat = np.maximum(starts, 0).reshape(len(starts), -1)
    each = np.take_along_axis(messages, flat, axis=1).reshape(starts.shape)
    begun = starts != NO_START
    sent: NDArray[np.int64] = (each * begun).sum(axis=-1) + begun.sum(axis=-1) - 1
    return sent
