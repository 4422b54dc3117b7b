"""The readers account for every byte of any input; `python -m tests.fuzz` tries it for hours."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.captures.fuzzing import case, check, corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzzed")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**40))
def test_damaged_captures_break_no_reader_and_no_decoder(folder, number):
    check(case(number), folder)


def test_a_number_always_gives_the_same_case():
    again = [case(number) for number in range(30)]
    assert [(one.name, one.data) for one in again] == [
        (one.name, one.data) for one in map(case, range(30))
    ]
    assert len({one.name for one in again}) > 10
    assert len(dict(corpus())) == len(corpus())
