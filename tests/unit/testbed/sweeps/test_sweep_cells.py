"""The cells of a sweep are all combinations, each with each seed, and none of them twice."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from math import prod
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testbed.errors import InputError
from testbed.places import LAB_NAME
from testbed.sweeps.cells import (
    STEPS,
    Axis,
    Sweep,
    check_axes,
    from_json,
    numbers_of,
    parse_axis,
    split,
)
from testbed.topology.units import RATE


def axes() -> st.SearchStrategy[tuple[Axis, ...]]:
    value = st.from_regex(r"[a-z0-9]{1,4}", fullmatch=True)
    values = st.lists(value, min_size=1, max_size=4, unique=True).map(tuple)
    paths = st.lists(st.sampled_from(["a", "b.c", "d[0].e", "f"]), unique=True, max_size=4)
    return paths.flatmap(
        lambda names: st.tuples(*(values.map(lambda v, n=n: Axis(n, v)) for n in names))  # type: ignore[misc]
    )


def sweeps() -> st.SearchStrategy[Sweep]:
    return st.builds(
        Sweep,
        lab=st.from_regex(r"[a-z0-9][a-z0-9-]{0,28}[a-z0-9]", fullmatch=True),
        axes=axes(),
        trials=st.integers(1, 4),
        seed=st.integers(0, 2**62),
        backend=st.sampled_from(["simulated", "netns"]),
        digest=st.just("x"),
    )


@given(sweeps())
def test_cells_are_complete_and_distinct(sweep: Sweep) -> None:
    cells = sweep.cells()
    assert len(cells) == prod(len(axis.values) for axis in sweep.axes) * sweep.trials
    assert len({(cell.settings, cell.seed) for cell in cells}) == len(cells)
    assert [cell.number for cell in cells] == [*range(1, len(cells) + 1)]
    for axis in sweep.axes:  # each value occurs in equally many cells
        counts = Counter(dict(cell.settings)[axis.path] for cell in cells)
        assert {*counts} == {*axis.values}
        assert len({*counts.values()}) == 1
    for settings in {cell.settings for cell in cells}:
        seeds = [cell.seed for cell in cells if cell.settings == settings]
        assert seeds == [*range(sweep.seed, sweep.seed + sweep.trials)]


@given(sweeps())
def test_labs_of_cells_have_names_of_their_own(sweep: Sweep) -> None:
    names = [sweep.name_of(cell) for cell in sweep.cells()]
    assert len({*names}) == len(names)
    assert all(LAB_NAME.fullmatch(name) for name in names)


@given(sweeps(), sweeps())
def test_labs_of_two_sweeps_can_be_up_at_once(one: Sweep, other: Sweep) -> None:
    other = replace(other, lab=one.lab)
    assume(one != other)
    names = [{sweep.name_of(cell) for cell in sweep.cells()} for sweep in (one, other)]
    assert names[0].isdisjoint(names[1])


@given(sweeps())
def test_a_sweep_survives_a_trip_through_a_file(sweep: Sweep) -> None:
    again = from_json(json.loads(json.dumps(sweep.as_json())))
    assert again == sweep
    assert again.identity == sweep.identity


@given(st.integers(0, 999), st.integers(1, 999), st.sampled_from(["kB/s", "%", "ms", ""]))
def test_a_range_has_both_ends_and_even_steps(low: int, width: int, unit: str) -> None:
    values = parse_axis(f"a={low}..{low + width}{unit}").values
    numbers = [Decimal(value.removesuffix(unit)) for value in values]
    assert (numbers[0], numbers[-1]) == (low, low + width)
    assert numbers == sorted({*numbers})
    if unit:
        assert len(values) == STEPS
        assert len({after - before for before, after in pairwise(numbers)}) == 1
    else:
        assert all(number % 1 == 0 for number in numbers)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rate=4..20kB/s", ("4kB/s", "8kB/s", "12kB/s", "16kB/s", "20kB/s")),
        ("rate=4..20:8kB/s", ("4kB/s", "12kB/s", "20kB/s")),
        ("rate=4..20:5kB/s", ("4kB/s", "9kB/s", "14kB/s", "19kB/s")),
        ("share=0.1..0.5", ("0.1", "0.2", "0.3", "0.4", "0.5")),
        ("count=1..3", ("1", "2", "3")),
        ("method=fifo,dmpq-pc", ("fifo", "dmpq-pc")),
        ("rate=1kB/s, 4..6:1kB/s", ("1kB/s", "4kB/s", "5kB/s", "6kB/s")),
        ("rate=5,10,20kB/s", ("5kB/s", "10kB/s", "20kB/s")),
        ("rate=5, 7.5, 20 kB/s", ("5kB/s", "7.5kB/s", "20 kB/s")),
        ("rate=5,10kB/s,15,20kB/s", ("5kB/s", "10kB/s", "15kB/s", "20kB/s")),
        ("rate=1,4..6:1kB/s", ("1kB/s", "4kB/s", "5kB/s", "6kB/s")),
        ("rate=4..6:1,20kB/s", ("4kB/s", "5kB/s", "6kB/s", "20kB/s")),
        ("queue=none,8,16kB", ("none", "8kB", "16kB")),
        ("loss=0,1%", ("0%", "1%")),
        ("count=1,2,3", ("1", "2", "3")),
        ("node=1,2a", ("1", "2a")),
        ("x='5',20kB", ("'5'", "20kB")),
        ("rate=10kB/s,1MB/s", ("10kB/s", "1MB/s")),
        ("x=[a, b],{c: [d, e]}", ("[a, b]", "{c: [d, e]}")),
        ("x='a,b',c", ("'a,b'", "c")),
        ("from=sensors[1..3]", ("sensors[1..3]",)),
    ],
)
def test_values_as_they_are_written(text: str, values: tuple[str, ...]) -> None:
    assert parse_axis(text).values == values


@given(st.lists(st.from_regex(r"[a-z0-9 ]{1,6}", fullmatch=True).map(str.strip), min_size=1))
def test_a_list_is_divided_at_its_commas(parts: list[str]) -> None:
    assert split(",".join(parts)) == parts


@pytest.mark.parametrize("text", ["a=5..4", "a=4..4", "a=x,x", "a=1..1000000:1", "a=1..2:0", "a"])
def test_values_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_axis(text)


@pytest.mark.parametrize(
    ("values", "column", "numbers"),
    [
        (("64kbit/s", "10kB/s"), "a.x_bps", [64_000.0, 80_000.0]),
        (("20ms", "1.5s", "2min"), "a.x_s", [0.02, 1.5, 120.0]),
        (("300B", "2kB", "1KiB"), "a.x_bytes", [300.0, 2000.0, 1024.0]),
        (("0.5%", "10%"), "a.x_share", [0.005, 0.1]),
        (("2/s", "30/min"), "a.x_per_s", [2.0, 0.5]),
        (("100m", "2km"), "a.x_m", [100.0, 2000.0]),
        (("3", "0.5", "-2"), "a.x_number", [3.0, 0.5, -2.0]),
        (("none", "16kB"), "a.x_bytes", [None, 16_000.0]),
        (("'16kB'",), "a.x_bytes", [16_000.0]),
    ],
)
def test_values_of_one_quantity_are_numbers_in_its_base_unit(
    values: tuple[str, ...], column: str, numbers: list[float | None]
) -> None:
    assert numbers_of(Axis("a.x", values)) == (column, dict(zip(values, numbers, strict=True)))


@pytest.mark.parametrize(
    "values",
    [
        ("fifo", "dmpq-pc"),
        ("3", "fifo"),
        ("3", "20ms"),
        ("[1, 2]",),
        ("true",),
        ("none",),
        ("'3'",),
    ],
)
def test_values_that_are_not_numbers_of_one_quantity_stay_text(values: tuple[str, ...]) -> None:
    assert numbers_of(Axis("a.x", values)) is None


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=5, unique=True))
def test_a_rate_as_a_number_is_the_rate_that_was_written(rates: list[int]) -> None:
    axis = Axis("rate", tuple(RATE.write(float(rate)) for rate in rates))
    assert numbers_of(axis) == ("rate_bps", dict(zip(axis.values, map(float, rates), strict=True)))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "rate=5kB/s,10,20",
            "--set rate: '10', '20' come after the last unit",
            "write the unit behind the last number, as in 5,10,20kB/s, or behind each",
        ),
        (
            "rate=5,10kB/s,20..30",
            "--set rate: '20..30' comes after the last unit",
            "write the unit behind the last number, as in 5,10,20kB/s, or behind each",
        ),
        (
            "rate=1,10kB/s,500,1MB/s",
            "--set rate: '1', '500' could be in kB/s or in MB/s",
            "write the unit behind each number",
        ),
    ],
)
def test_a_number_whose_unit_is_not_clear_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_axis(text)
    assert (refused.value.message, refused.value.hint) == (message, hint)


@given(
    st.lists(st.integers(1, 999), min_size=1, max_size=6, unique=True),
    st.sampled_from(["kB/s", "ms", "%", "kB", "/s"]),
    st.randoms(),
)
def test_the_unit_of_the_last_number_is_that_of_all(
    numbers: list[int], unit: str, chance: Random
) -> None:
    some = [f"{number}{chance.choice(['', unit])}" for number in numbers[:-1]]
    text = ",".join([*some, f"{numbers[-1]}{unit}"])
    assert parse_axis(f"a={text}").values == tuple(f"{number}{unit}" for number in numbers)


def test_axes_that_cannot_be_combined_are_refused() -> None:
    with pytest.raises(InputError, match="set twice"):
        check_axes([Axis("a", ("1",)), Axis("a", ("2",))], 1)
    with pytest.raises(InputError, match="trials differ"):
        check_axes([Axis("seed", ("1", "2"))], 1)
    with pytest.raises(InputError, match="a name of its own"):
        check_axes([Axis("name", ("a", "b"))], 1)
    with pytest.raises(InputError, match="too many"):
        check_axes([Axis("a", tuple(map(str, range(1000))))], 11)
