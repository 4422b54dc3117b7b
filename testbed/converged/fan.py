"""FAN-TBPS, our own: a publication fans out to helpers that are spaced by key, and each serves its own stretch.

The rule. A publisher knows the keys, vectors and addresses of its topic's subscribers, as PSG-TBPS assumes (it could
not choose support nodes by vector otherwise). For a publication of priority p to S subscribers, in key order:

1. parts: k = min(S, count(p)), with count(p) as in PSG-TBPS (`supports.start_count`). Subscriber number j (from 0) is
   in part j * k // S: k stretches of keys whose sizes differ by one at most.
2. helpers: in each part the member with the most neighbours inside the part; of several the one nearest to the part's
   middle, of two the smaller key. Two members are neighbours if everyone between them shares fewer bits with them
   than they share with each other: the publisher needs no request.
3. the publisher sends each helper one message, with the part's first and last key. The helper delivers it and sends
   it on within that range by the Skip Graph's own range multicast, `split`.

Why it works. Membership vectors are random in key space, so PSG-TBPS' start nodes are scattered: some subscribers are
near to many of them and some to none, and since no start node knows what the others reach, each one has to serve
all. Stretches of keys do not overlap and leave no gap: a subscriber has exactly one helper, gets the message
exactly once, and a publication costs one message per subscriber at every priority, which nothing can undercut (and not
more than SG-TBPS, whose way to the first subscriber leads through publishers). At priority 5 a part has about four
members. In such a part most helpers reach everyone directly, so that hardly anyone is farther than two hops. If a
helper is gone, the range it was given names all nodes that lack the message; the publisher sends the part to another.

With the same knowledge a publisher could send to all subscribers itself: one hop, and as many messages in all. But they
would all leave by its own link, one after the other. Here that link carries k messages, no more than with PSG-TBPS.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.converged.graph import Neighbours
from testbed.converged.multicast import Hops, leftward_hops
from testbed.converged.psg import space_bits, start_count

_Ints = NDArray[np.int64]


def fan_parts(size: int, subscribers: int, priority: int) -> _Ints:
    """The part of each subscriber of a topic of `size`."""
    parts = min(subscribers, start_count(space_bits(size), priority))
    return np.arange(subscribers) * parts // subscribers


def fan_helpers(neighbours: Neighbours, publishers: int, part: _Ints) -> _Ints:
    """The helper of each part, `helpers[topic, part]`, as a number among the topic's subscribers."""
    size, subscribers = neighbours.size, len(part)
    part_of_peer = np.concatenate([np.full(publishers, -1), part])
    owner = neighbours.owners
    same = part_of_peer[owner % size] == part_of_peer[neighbours.peers % size]
    near = np.bincount(owner[same], minlength=neighbours.topics * size)
    near = near.reshape(-1, size)[:, publishers:]
    first = np.searchsorted(part, np.arange(part[-1] + 1))
    last = np.append(first[1:], subscribers) - 1
    number = np.arange(subscribers)
    off_middle = np.abs(2 * number - first[part] - last[part])
    # One number to compare by: more neighbours, then nearer to the middle, then the smaller key.
    rank = (near * 2 * subscribers - off_middle) * subscribers + (subscribers - 1 - number)
    best = np.maximum.reduceat(rank, first, axis=1)
    return subscribers - 1 - best % subscribers


def fan_paths(
    neighbours: Neighbours, rightward: Hops, publishers: int, helpers: _Ints, part: _Ints
) -> Hops:
    """Hops to each subscriber, `paths[topic, subscriber]`; `rightward` by `split_hops`."""
    size, subscribers = neighbours.size, len(part)
    first = np.searchsorted(part, part)  # the first subscriber of each one's part
    goal = np.arange(subscribers) + publishers
    helper = helpers[:, part] + publishers
    topic = np.arange(neighbours.topics)[:, None]
    paths: Hops = rightward[topic, helper, goal] + np.uint8(1)
    where, left = np.nonzero(goal < helper)
    begin = where * size
    paths[where, left] += leftward_hops(
        neighbours,
        rightward,
        begin + helper[where, left],
        begin + goal[left],
        begin + first[left] + publishers,
    )
    return paths
