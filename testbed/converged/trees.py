"""What a multicast along a tree of searches sends."""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.flood import Hops


def tree_messages(hops: Hops, publishers: int) -> NDArray[np.int64]:
    """Messages of a multicast from each peer to all subscribers of its topic, `messages[topic, from]`.

    `hops[topic, from, to]` by `search` or `split`. Each subscriber gets the message once. Between subscribers there
    are none but subscribers; and a publisher that is passed on the way to any of them is also passed on the way to
    the first of them: at such a publisher a longer hop would have been taken if it had not passed the first. So the
    tree has one link for each subscriber, and one for each publisher between the sender and the first subscriber.
    """
    subscribers = hops.shape[2] - publishers
    messages = np.full(hops.shape[:2], subscribers - 1, dtype=np.int64)
    messages[:, :publishers] += hops[:, :publishers, publishers]
    return messages
