"""The delay that the thesis estimates from hops (Kita 2025, 6.1)."""

NODE_MS = 1.0  # in each node that is reached
LINK_MS = 10.0
CHILD_MS = 0.1  # a node sends to its children one after the other
CHILDREN = 10  # of each node on a way of several hops


def hops_ms(path: float) -> float:
    """On a way of `path` hops, each by a node with `CHILDREN`."""
    return path * (NODE_MS + LINK_MS + CHILD_MS * CHILDREN)


def one_hop_ms(receivers: int) -> float:
    """Until the last of those has it to whom one node sends directly."""
    return NODE_MS + LINK_MS + CHILD_MS * receivers
