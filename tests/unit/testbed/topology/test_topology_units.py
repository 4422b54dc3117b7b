"""Quantities are read exactly, written back the same, and never guessed."""

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.topology import units
from testbed.topology.units import DURATION, RATE, SHARE, SIZE, UnitError


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [
        ("128kbit/s", 128_000),
        ("128 kbit/s", 128_000),
        ("7.2Mbit/s", 7_200_000),
        ("1Gbit/s", 1_000_000_000),
        ("1bit/s", 1),
        ("10kB/s", 80_000),
        (".5MB/s", 4_000_000),
        ("1KiB/s", 8_192),
        ("1MiB/s", 8_388_608),
    ],
)
def test_rates_are_bits_per_second(text: str, bits_per_second: float) -> None:
    assert units.parse_rate(text) == bits_per_second


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60ms", 0.06), ("0.1s", 0.1), ("5us", 5e-6), ("1ns", 1e-9), ("2min", 120), ("1.5h", 5400)],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("0B", 0), ("1kB", 1000), ("1.5kB", 1500), ("1KiB", 1024), ("2MiB", 2**21)]
)
def test_sizes_are_whole_bytes(text: str, size: int) -> None:
    assert units.parse_size(text) == size


def test_shares_are_parts_of_one() -> None:
    assert units.parse_share("0.5%") == 0.005
    assert units.parse_share("100%") == 1.0


@pytest.mark.parametrize(("text", "seconds"), [("2/s", 0.5), ("10/min", 6.0), ("1/h", 3600.0)])
def test_message_rates_become_periods(text: str, seconds: float) -> None:
    assert units.parse_period(text) == seconds


@pytest.mark.parametrize(
    "value",
    [
        5,
        0,
        0.5,
        -1,
        True,
        None,
        [],
        {},
        "",
        "5",
        "s",
        "-5s",
        "5 s s",
        "5  s",
        "1e3s",
        "inf s",
        "٣s",
        "1,5s",
        "5s\n",
    ],
)
def test_a_duration_without_clear_unit_and_number_is_refused(value: object) -> None:
    with pytest.raises(UnitError) as caught:
        units.parse_duration(value)
    assert caught.value.hint


@pytest.mark.parametrize("unit", ["kbps", "Kbps", "kb/s", "Mbps", "bps"])
def test_units_that_mean_bits_to_some_and_bytes_to_others_are_refused(unit: str) -> None:
    with pytest.raises(UnitError) as caught:
        units.parse_rate(f"100{unit}")
    assert "bit/s" in caught.value.hint
    assert "B/s" in caught.value.hint


@given(st.floats(min_value=1, max_value=1e12, allow_nan=False))
def test_every_rate_reads_back_as_it_was_written(value: float) -> None:
    assert units.parse_rate(RATE.write(value)) == value


@given(st.floats(min_value=0, max_value=1e9, allow_nan=False).map(lambda x: round(x, 9)))
def test_every_duration_reads_back_as_it_was_written(value: float) -> None:
    assert units.parse_duration(DURATION.write(value)) == value


@given(st.integers(min_value=0, max_value=10**12))
def test_every_size_reads_back_as_it_was_written(value: int) -> None:
    assert units.parse_size(SIZE.write(value)) == value


@given(st.integers(min_value=0, max_value=10**9).map(lambda x: x / 10**9))
def test_every_share_reads_back_as_it_was_written(value: float) -> None:
    assert units.parse_share(SHARE.write(value)) == value


@given(
    st.decimals(min_value=0, max_value=10**6, places=6, allow_nan=False),
    st.sampled_from(sorted(DURATION.units)),
)
def test_a_quantity_is_its_number_times_its_unit(number: Decimal, unit: str) -> None:
    assert DURATION.read(f"{number:f}{unit}") == number * DURATION.units[unit]


@pytest.mark.parametrize(
    ("value", "text"), [(128_000, "128kbit/s"), (7_200_000, "7.2Mbit/s"), (0.0, "0bit/s")]
)
def test_rates_are_written_in_the_largest_unit_that_fits(value: float, text: str) -> None:
    assert RATE.write(value) == text


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none())
def test_any_value_is_a_quantity_or_a_unit_error(value: object) -> None:
    for parse in (
        units.parse_rate,
        units.parse_duration,
        units.parse_size,
        units.parse_share,
        units.parse_period,
    ):
        with contextlib.suppress(UnitError):
            assert parse(value) >= 0
