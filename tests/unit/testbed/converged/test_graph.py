"""A converged Skip Graph: each level's lists are the peers that share so many bits, in key order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.overlays.literal_overlay import lists
from testbed.converged import converge
from testbed.converged.graph import NO_NODE

close = st.integers(0, 7).map(lambda bits: bits << 61)  # vectors that share much, and often all
apart = st.integers(0, 2**64 - 1)


@st.composite
def peers(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Nodes with one key or several, in any order."""
    vectors = draw(st.lists(close | apart, min_size=1, max_size=8))
    owners = st.integers(0, len(vectors) - 1)
    return draw(st.lists(owners, min_size=1, max_size=14)), vectors


@given(peers())
def test_lists_equal_those_of_a_search_through_all_peers(
    given_peers: tuple[list[int], list[int]],
) -> None:
    owners, vectors = given_peers
    left, right = converge(np.array(owners, dtype=np.int32), np.array(vectors, dtype=np.uint64))
    expected = lists(owners, vectors)
    assert len(left) == len(expected)
    for level, links in enumerate(expected):
        for peer, (before, after) in links.items():
            if _has_list(expected, owners, level, peer):
                assert left[level, peer] == (NO_NODE if before is None else before)
                assert right[level, peer] == (NO_NODE if after is None else after)
            else:
                assert left[level, peer] == right[level, peer] == NO_NODE


def _has_list(
    levels: list[dict[int, tuple[int | None, int | None]]], owners: list[int], level: int, peer: int
) -> bool:
    """A peer makes a level if another node is in its list below."""
    if level == 0:
        return True
    below, found = levels[level - 1], {peer}
    for side in (0, 1):
        at = peer
        while (near := below[at][side]) is not None:
            found.add(near)
            at = near
    return len({owners[member] for member in found}) > 1


def test_the_lists_of_the_thesis_example() -> None:
    """Figure 4.1: keys 9/00, 21/10, 33/01, 48/00, 75/11, 99/11."""
    vectors = np.array([0b00, 0b10, 0b01, 0b00, 0b11, 0b11], dtype=np.uint64) << np.uint64(62)
    vectors[3] |= np.uint64(
        1
    )  # a bit that no level looks at, since no two peers have the same vector
    vectors[5] |= np.uint64(1)
    _, right = converge(np.arange(6, dtype=np.int32), vectors)
    assert right[0].tolist() == [1, 2, 3, 4, 5, NO_NODE]
    assert right[1].tolist() == [2, 4, 3, NO_NODE, 5, NO_NODE]
    assert right[2].tolist() == [3, NO_NODE, NO_NODE, NO_NODE, 5, NO_NODE]
