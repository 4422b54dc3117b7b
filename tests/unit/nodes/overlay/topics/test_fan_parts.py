"""How FAN-TBPS splits the subscribers' range: an example by hand, no gap, the same choice as in converged overlays."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodes.overlay.topics.parts import Part, fan_parts, neighbours_inside, parts_around
from nodes.overlay.topics.psg import space_bits, start_count
from nodes.protocol.skipgraph_messages import VECTOR_BITS, Contact, vector_of
from testbed.converged import fan
from testbed.converged.graph import converge, neighbours_in_topics

LOW, HIGH = b"\x00", b"\xff"
VECTORS = ["000", "110", "010", "111", "100", "011", "001"]
SEVEN = [Contact(bytes([number]), number, vector_of(v)) for number, v in enumerate(VECTORS, 1)]

vectors = st.lists(st.integers(0, 2**VECTOR_BITS - 1) | st.integers(0, 3), min_size=1, max_size=40)


def contacts(found: list[int]) -> list[Contact]:
    return [Contact(bytes([1, number]), number, vector) for number, vector in enumerate(found)]


def test_seven_subscribers_in_two_parts() -> None:
    # Level 0: 1-2-3-4-5-6-7. Level 1: 1-3-6-7 (0..), 2-4-5 (1..). Level 2: 1-7 (00.), 3-6 (01.), 2-4 (11.).
    assert neighbours_inside([contact.vector for contact in SEVEN]) == [3, 3, 4, 3, 2, 3, 2]
    # The parts are 1 2 3 4 and 5 6 7. Inside the first, 2 and 3 have three neighbours each, and are equally near to the
    # middle: the smaller key serves. Inside the second, 6 has two.
    assert fan_parts(SEVEN, 2, LOW, HIGH) == [
        Part(LOW, SEVEN[4].key, SEVEN[1]),
        Part(SEVEN[4].key, HIGH, SEVEN[5]),
    ]


def test_around_a_helper_that_is_lost() -> None:
    part = Part(LOW, SEVEN[4].key, SEVEN[1])
    rest = [contact for contact in SEVEN if contact != SEVEN[1]]
    assert parts_around(part, SEVEN[1], rest) == [
        Part(LOW, SEVEN[1].key, SEVEN[0]),
        Part(SEVEN[1].key + b"\0", SEVEN[4].key, SEVEN[2]),
    ]
    alone = Part(SEVEN[3].key, SEVEN[4].key, SEVEN[3])
    assert parts_around(alone, SEVEN[3], [SEVEN[0]]) == [
        Part(SEVEN[3].key + b"\0", SEVEN[4].key, None)
    ]


@given(vectors, st.integers(1, 50))
def test_every_key_is_in_one_part_and_sizes_differ_by_one_at_most(
    found: list[int], count: int
) -> None:
    subscribers = contacts(found)
    parts = fan_parts(subscribers, count, LOW, HIGH)
    assert len(parts) == min(len(found), count)
    assert parts[0].low == LOW
    assert parts[-1].high == HIGH
    assert all(one.high == other.low for one, other in pairwise(parts))
    sizes = []
    for part in parts:
        assert part.helper is not None
        assert part.low <= part.helper.key < part.high
        sizes.append(sum(part.low <= contact.key < part.high for contact in subscribers))
    assert sum(sizes) == len(found)
    assert max(sizes) - min(sizes) <= 1


@given(vectors, st.data())
def test_around_the_lost_lies_all_but_the_lost(found: list[int], data: st.DataObject) -> None:
    subscribers = contacts(found)
    (part,) = fan_parts(subscribers, 1, LOW, HIGH)
    lost = data.draw(st.sampled_from(subscribers))
    rest = [contact for contact in subscribers if contact != lost]
    pieces = parts_around(part, lost, rest)
    for key in [*(contact.key for contact in rest), lost.key + b"\0", LOW + b"\1"]:
        assert sum(piece.low <= key < piece.high for piece in pieces) == 1
    assert not any(piece.low <= lost.key < piece.high for piece in pieces)
    for piece in pieces:
        inside = [contact for contact in rest if piece.low <= contact.key < piece.high]
        assert piece.helper in inside if inside else piece.helper is None


@given(
    vectors=st.lists(st.integers(0, 2**VECTOR_BITS - 1), min_size=2, max_size=60, unique=True),
    priority=st.integers(1, 5),
    data=st.data(),
)
def test_parts_and_helpers_are_those_of_converged_overlays(
    vectors: list[int], priority: int, data: st.DataObject
) -> None:
    size = len(vectors)
    publishers = data.draw(st.integers(1, size - 1))
    _, right = converge(np.arange(size, dtype=np.int32), np.array(vectors, dtype=np.uint64))
    part = fan.fan_parts(size, size - publishers, priority)
    (helpers,) = fan.fan_helpers(neighbours_in_topics(right, size), publishers, part)

    subscribers = contacts(vectors)[publishers:]
    count = start_count(space_bits(size), priority)
    parts = fan_parts(subscribers, count, LOW, HIGH)
    served = [
        next(n for n, one in enumerate(parts) if one.low <= contact.key < one.high)
        for contact in subscribers
    ]
    assert served == part.tolist()
    assert [one.helper for one in parts] == [subscribers[helper] for helper in helpers]
