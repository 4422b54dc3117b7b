"""Where a key lies: keys are bytes, compared as bytes; at level 0 they form a ring, everywhere else a line."""


def between(left: bytes, key: bytes, right: bytes) -> bool:
    """Whether one who goes right from `left` meets `key` before `right`; on the ring, ends excluded.

    A ring of one goes all the way round: between a key and itself lies every other key.
    """
    if left < right:
        return left < key < right
    return key not in (left, right) and (key > left or key < right)


def in_gap(left: bytes, key: bytes, right: bytes) -> bool:
    """The same with the right end included: whether the peer at `left` decides who stands at `key`."""
    return key == right or between(left, key, right)
