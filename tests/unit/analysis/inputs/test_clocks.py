"""Clocks of boards: their measurements, and the error of times that were corrected by them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.captures.clock import RATE, Measurement, clock_of
from analysis.inputs.clocks import NONE, parse_clocks, read_clocks

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def line(**other):
    entry = {"t_ns": START, "node": "pi", "offset_ns": 5, "error_ns": 1, "when": "before"}
    return json.dumps({**entry, **other}).encode()


def clock(*measured):
    """A clock with measurements, each given as (second, offset in ns, error in ns)."""
    return clock_of(
        "pi", [Measurement(START + at * SECOND, o, e, "during") for at, o, e in measured]
    )


def at(*seconds):
    return START + (np.array(seconds) * SECOND).astype(np.int64)


def test_a_run_without_the_file_has_no_clock_measurements(tmp_path):
    assert read_clocks(tmp_path / "clocks.jsonl") is NONE


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"t_ns": 17',
        b"null",
        b"[1]",
        b"\xff\xfe",
        line(node=7),
        line(t_ns="1"),
        line(t_ns=True),
        line(error_ns=-1),
        line(offset_ns=1.5),
        line(offset_ns=1 << 70),
        line(t_ns=(1 << 62) - 1, offset_ns=(1 << 62) - 1),
        line(when="later"),
    ],
)
def test_a_damaged_line_is_reported_and_the_others_count(damaged):
    found = parse_clocks(b"\n".join([line(), damaged, line(node="other"), b""]))
    assert found.damaged == (2,)
    assert list(found.by_node) == ["other", "pi"]


@given(st.binary(max_size=300))
def test_any_bytes_can_be_read(text):
    parse_clocks(text)


def test_of_measurements_within_five_seconds_the_best_counts():
    one = clock((0, 100, 50), (2, 120, 10), (4, 90, 60), (9, 130, 5))
    assert one.offset_ns.tolist() == [120, 130]
    assert one.at_ns.tolist() == at(2, 9).tolist()


def test_the_offset_is_interpolated_between_measurements_and_constant_outside():
    one = clock((0, 0, 0), (10, 1000, 0))
    assert one.offset_at(at(-5, 0, 5, 10, 30)).tolist() == [0, 0, 500, 1000, 1000]
    own = at(-5, 0, 5, 10, 30) + np.array([0, 0, 500, 1000, 1000])
    assert one.to_lab_ns(own).tolist() == at(-5, 0, 5, 10, 30).tolist()


def test_the_error_is_that_of_the_measurements_plus_the_largest_possible_drift():
    one = clock((0, 0, 1_000_000), (20, 0, 3_000_000))
    found = one.error_at(at(0, 10, 20, 120)) / 1e6
    assert found == pytest.approx(
        [1.0, 2.5, 3.0, 8.0], rel=1e-3
    )  # 50 ppm: 0.5 ms in 10 s, 5 ms in 100 s


def test_measurements_that_no_clock_of_that_rate_explains_make_the_error_as_large_as_they_differ():
    one = clock((0, 0, 1000), (20, SECOND, 1000), (40, SECOND, 1000))
    assert one.was_set
    assert one.error_at(at(10))[0] >= SECOND
    assert one.error_at(at(30))[0] < 2_000_000
    assert not clock((0, 0, 1000), (20, 1_000_000, 1000)).was_set  # 50 ppm


def test_a_measurement_that_contradicts_the_best_of_its_moment_enlarges_the_error():
    one = clock((0, 0, 10), (1, 1_000_000, 100))
    assert one.error_ns.tolist() == [1_000_000 - 100 - 50_000]


def test_a_clock_that_was_set_back_far_is_not_believed_anywhere():
    one = clock((0, 0, 10), (10, -60 * SECOND, 10), (20, -60 * SECOND, 10))
    assert (one.error_at(at(-1, 5, 15, 30)) >= 60 * SECOND).all()


def test_the_rate_has_its_error():
    rate, error = clock((0, 0, 1000), (100, 2_000_000, 1000)).drift
    assert rate == pytest.approx(20e-6)
    assert error == pytest.approx(20e-9)
    assert clock((0, 0, 1)).drift is None


@st.composite
def true_clocks(draw):
    """A clock whose rate changes now and then, never wrong by more than RATE, and honest measurements of it."""
    base = draw(st.integers(-(10**18), 10**15))
    bends = sorted(draw(st.sets(st.integers(0, 600), max_size=6)) | {-100, 800})
    rates = [draw(st.floats(-RATE, RATE)) for _ in bends[1:]]
    heights = np.concatenate(([0.0], np.cumsum(np.diff(bends) * np.array(rates)))) * SECOND

    def offset(seconds):
        return base + np.rint(np.interp(seconds, bends, heights)).astype(np.int64)

    measured = []
    for when in draw(st.lists(st.floats(0, 600), min_size=1, max_size=12)):
        error = draw(st.integers(0, 200_000_000))
        wrong = draw(st.integers(-error, error))
        measured.append((when, int(offset(np.array([when]))[0]) + wrong, error))
    return offset, measured


@given(true_clocks(), st.lists(st.floats(-100, 800), min_size=1, max_size=30))
def test_the_truth_is_always_within_the_bound(true, asked):
    offset, measured = true
    one = clock_of(
        "pi",
        [Measurement(START + round(t * SECOND), o, e + 1, "during") for t, o, e in measured],
    )
    lab = START + np.rint(np.array(asked) * SECOND).astype(np.int64)
    off = np.abs(one.offset_at(lab) - offset(np.array(asked)))
    slack = 300 if abs(measured[0][1]) > 1 << 52 else 2  # the precision of a float
    assert (off <= one.error_at(lab) + slack).all()
    to_lab_ns = one.to_lab_ns(lab + offset(np.array(asked)))
    assert (np.abs(to_lab_ns - lab) <= one.error_at(to_lab_ns) + 2).all()


@given(true_clocks(), st.data())
def test_times_keep_their_order(true, data):
    _, measured = true
    one = clock_of(
        "pi", [Measurement(START + round(t * SECOND), o, e, "during") for t, o, e in measured]
    )
    own = np.array(sorted(data.draw(st.lists(st.integers(0, 600 * SECOND), max_size=20))), np.int64)
    if not one.was_set:
        assert (np.diff(one.to_lab_ns(START + int(one.offset_ns[0]) + own)) >= -1).all()
