"""TCP reassembly against a byte-by-byte model."""

import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.streams.reassembly import REORDERED_WITHIN_NS, Reassembly, reassemble, unwrap

TEXT = bytes(range(256)) * 2

segment = st.tuples(st.integers(0, 60), st.integers(1, 25), st.integers(0, 25))


def put_together(segments, opening_seq, with_opening, text=TEXT, step_ns=10):
    """Segments (position, length, bytes cut by the capture) at times 10, 20, ..., or with other steps."""
    opening = opening_seq & 0xFFFFFFFF if with_opening else None
    return reassemble(text, *as_columns(segments, opening_seq, step_ns), opening)


def as_columns(segments, opening_seq, step_ns=10):
    seq, length, kept, at, ts = [], [], [], [], []
    for number, (position, size, cut) in enumerate(segments):
        seq.append((opening_seq + position) & 0xFFFFFFFF)
        length.append(size)
        kept.append(max(0, size - cut))
        at.append(position)
        ts.append(step_ns * (number + 1))
    return [np.array(column, np.int64) for column in (seq, length, kept, at, ts)]


def model(segments, base):
    """Per byte of the stream: when it was first seen."""
    seen = {}
    for number, (position, size, _) in enumerate(segments):
        for byte in range(position, position + size):
            seen.setdefault(byte - base, 10 * (number + 1))
    return seen


@given(st.lists(segment, min_size=1, max_size=12), st.integers(0, 2**32 - 1), st.booleans())
@example([(0, 5, 0), (10, 5, 0), (2, 10, 0)], 2**32 - 3, True)
@example([(5, 5, 0), (0, 5, 0)], 0, False)
def test_each_byte_is_seen_when_the_first_segment_with_it_passes(segments, opening, with_opening):
    stream = put_together(segments, opening, with_opening)
    base = 0 if with_opening else min(position for position, _, _ in segments)
    seen = model(segments, base)
    end = max(seen) + 1
    assert len(stream.data) == end
    assert stream.covered_bytes == len(seen)
    places = np.array(sorted(seen), np.int64)
    assert stream.seen_ns[stream.segment(places)].tolist() == [
        seen[byte] for byte in places.tolist()
    ]
    for byte in seen:
        earlier = [when for other, when in seen.items() if other <= byte]
        assert stream.complete_ns[stream.segment(np.array([byte]))[0]] == max(earlier)
    for begin in range(0, end, 7):
        counted = stream.covered(np.array([begin]), np.array([end]))[0]
        assert counted == sum(begin <= byte < end for byte in seen)


@given(st.lists(segment, min_size=1, max_size=12))
@example([(0, 5, 0), (10, 5, 0), (5, 5, 0), (0, 15, 0)])
def test_a_byte_stalls_all_behind_it_until_it_comes_and_its_repetitions_are_noted(segments):
    step = REORDERED_WITHIN_NS + 1
    stream = put_together(segments, 0, True, step_ns=step)
    seen = {byte: when // 10 * step for byte, when in model(segments, 0).items()}
    for byte in seen:
        piece = stream.segment(np.array([byte]))[0]
        complete = max(when for other, when in seen.items() if other <= byte)
        prompt = min(when for other, when in seen.items() if other >= stream.starts[piece])
        assert stream.stalled_ns[piece] == complete - prompt
    for piece, (start, size) in enumerate(zip(stream.starts, stream.lengths, strict=True)):
        last = max(
            step * (number + 1)
            for number, (position, length, _) in enumerate(segments)
            if position < start + size and start < position + length
        )
        assert stream.repeated_ns[piece] == last - stream.seen_ns[piece]


@given(st.lists(segment, min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_known_bytes_are_the_ones_that_were_sent_and_unknown_ones_are_zero(segments, opening):
    stream = put_together(segments, opening, True)
    unknown = {byte for begin, end in stream.unknown for byte in range(begin, end)}
    for place, byte in enumerate(stream.data):
        assert byte == (0 if place in unknown else TEXT[place])


@given(st.permutations(range(8)), st.integers(0, 2**32 - 1))
def test_segments_in_any_order_give_the_same_bytes(order, opening):
    stream = put_together([(5 * number, 5, 0) for number in order], opening, True)
    assert stream.data == TEXT[:40]
    assert stream.unknown == ()


@given(st.lists(segment, min_size=1, max_size=8))
def test_sending_everything_again_changes_nothing_but_the_count(segments):
    once = put_together(segments, 7, True)
    twice = put_together(segments + segments, 7, True)
    assert (twice.data, twice.unknown) == (once.data, once.unknown)
    assert twice.covered_bytes == once.covered_bytes
    assert twice.retransmitted + twice.reordered == once.retransmitted + once.reordered + len(
        segments
    )


def test_a_segment_that_comes_late_was_sent_again_and_one_that_comes_soon_was_overtaken():
    def stream(gap_ns):
        columns = ([100, 120, 110], [10, 10, 10], [10, 10, 10], [0, 20, 10])
        times = [0, 1_000, 1_000 + gap_ns]
        arrays = [np.array(column, np.int64) for column in (*columns, times)]
        return reassemble(TEXT, *arrays, 100)

    soon, late = stream(REORDERED_WITHIN_NS), stream(REORDERED_WITHIN_NS + 1)
    assert (soon.retransmitted, soon.reordered) == (0, 1)
    assert (late.retransmitted, late.reordered) == (1, 0)


def test_a_stray_segment_far_away_does_not_make_a_huge_hole():
    stream = put_together([(0, 5, 0)], 0, True)
    stray = np.array([0, 2**30], np.int64)
    five = np.array([5, 5], np.int64)
    both = reassemble(TEXT, stray, five, five, np.array([0, 5]), np.array([1, 2]), 0)
    assert both.data == stream.data
    assert both.stray == 5


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_sequence_numbers_do_not_wrap_after_unwrapping(steps, first):
    true = np.cumsum([0, *steps])
    wrapped = (true + first) & 0xFFFFFFFF
    assert unwrap(wrapped).tolist() == true.tolist()


@given(
    st.lists(segment, min_size=1, max_size=14),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sets(st.integers(1, 13)),
    st.sampled_from([10, 5_000_000]),
)
def test_a_stream_does_not_depend_on_where_the_windows_of_a_file_end(
    segments, opening, with_opening, cuts, step_ns
):
    """Segments added in parts, each from bytes of its own, give the stream that they give together."""
    together = put_together(segments, opening, with_opening, step_ns=step_ns)
    parts = Reassembly(opening if with_opening else None)
    edges = [0, *sorted(cut for cut in cuts if cut < len(segments)), len(segments)]
    for begin, end in itertools.pairwise(edges):
        columns = as_columns(segments, opening, step_ns)
        window = [column[begin:end] for column in columns]
        parts.add(TEXT, *window)
        parts.end_window()
    assert_same(parts.stream(), together)


def assert_same(one, other):
    for name in ("data", "unknown", "from_start", "retransmitted", "retransmitted_payload"):
        assert getattr(one, name) == getattr(other, name), name
    assert (one.reordered, one.stray) == (other.reordered, other.stray)
    for name in ("starts", "lengths", "seen_ns", "repeated_ns", "complete_ns", "stalled_ns"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


@given(
    st.lists(segment, min_size=1, max_size=14),
    st.integers(0, 2**32 - 1),
    st.integers(0, 13),
    st.data(),
)
def test_released_bytes_are_missing_from_the_stream_only(segments, opening, moment, data):
    """Releasing bytes changes neither the rest of the stream nor any count."""
    together = put_together(segments, opening, True)
    columns = as_columns(segments, opening)
    parts = Reassembly(opening)
    moment = min(moment, len(segments))
    parts.add(TEXT, *(column[:moment] for column in columns))
    parts.end_window()
    there = covered_from_start(segments[:moment])
    size = data.draw(st.integers(0, there))
    parts.release(size)
    parts.add(TEXT, *(column[moment:] for column in columns))
    rest = parts.stream()
    assert rest.data == together.data[size:]
    assert parts.fresh == together.covered_bytes
    assert (rest.retransmitted, rest.reordered) == (together.retransmitted, together.reordered)
    assert parts.missing(len(together.data)) == len(together.data) - together.covered_bytes
    if size < len(together.data):
        places = np.arange(size, len(together.data))
        whole = together.complete_ns[together.segment(places)]
        assert rest.complete_ns[rest.segment(places - size)].tolist() == whole.tolist()


def covered_from_start(segments):
    seen = {byte for position, size, _ in segments for byte in range(position, position + size)}
    return next(byte for byte in itertools.count() if byte not in seen)
