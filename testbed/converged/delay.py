"""The delay that the thesis estimates from hops (Kita 2025, 6.1)."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

NODE_MS = 1.0  # in each node that is reached
LINK_MS = 10.0
CHILD_MS = 0.1  # a node sends to its children one after the other
CHILDREN = 10  # of each node on a way of several hops

_Numbers = TypeVar("_Numbers", float, NDArray[np.float64])


def hops_ms(path: _Numbers) -> _Numbers:
    """On a way of `path` hops, each by a node with `CHILDREN`."""
    return path * (NODE_MS + LINK_MS + CHILD_MS * CHILDREN)


def one_hop_ms(receivers: _Numbers) -> _Numbers:
    """Until the last of those has it to whom one node sends directly."""
    return NODE_MS + LINK_MS + CHILD_MS * receivers
