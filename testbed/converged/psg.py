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
    topics, _, subscribers = hops.shape
    nobody = np.full((topics, 1, subscribers), _FAR, dtype=np.uint8)
    rows = np.concatenate([hops, nobody], axis=1)  # where `NO_START` leads to
    rows, row = rows.reshape(-1, subscribers), _rows(starts, rows.shape[1])
    paths: Hops = rows[row[0]]
    if len(row) > 1:
        soonest = rows[row[1]]
        another = np.empty_like(soonest)
        for number in range(2, len(row)):
            np.take(rows, row[number], axis=0, out=another, mode="clip")
            np.minimum(soonest, another, out=soonest)
        np.minimum(paths, soonest + np.uint8(1), out=paths)
    return paths.reshape(*starts.shape[1:], subscribers)


def psg_messages(messages: NDArray[np.int64], starts: Starts) -> NDArray[np.int64]:
    """Messages of each publication, `[topic, publisher]`: what each start node's multicast sends, and one to each.

    `messages[topic, start]`. The start nodes know nothing of each other, so nothing is suppressed between them.
    """
    with_nobody = np.concatenate([messages + 1, np.zeros_like(messages[:, :1])], axis=1)
    row = _rows(starts, with_nobody.shape[1])
    sent: NDArray[np.int64] = with_nobody.ravel()[row].sum(axis=0) - 1  # none to the publisher
    return sent.reshape(starts.shape[1:])


def _rows(starts: Starts, per_topic: int) -> NDArray[np.int64]:
    """Topics side by side, the last row of each is nobody's: `[number, topic and publisher]`."""
    peer = np.where(starts == NO_START, per_topic - 1, starts)
    row: NDArray[np.int64] = peer + per_topic * np.arange(starts.shape[1])[:, None]
    return row.reshape(len(starts), -1)
