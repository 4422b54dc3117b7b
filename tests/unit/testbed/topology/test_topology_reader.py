"""The YAML reader: plain values keep their meaning, and every value has its place."""

import pytest

from testbed.topology import TopologyErrors
from testbed.topology.diagnostics.source_map import Place
from testbed.topology.parse.yaml_reader import read


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("No", "No"),
        ("True", "True"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("1:30", "1:30"),
        ("010", "010"),
        ("-010", "-010"),
        ("00.5", "00.5"),
        ("0x10", "0x10"),
        ("0o10", "0o10"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("<<", "<<"),
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("0", 0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", "5."),
        ("1e3", 1000.0),
        ("'5'", "5"),
        ('"true"', "true"),
        ("9" * 30, "9" * 30),
    ],
)
def test_plain_values_keep_their_meaning(written: str, meant: object) -> None:
    document, problems = read(f"key: {written}\n", "file")
    assert document.data == {"key": meant}
    assert type(document.data["key"]) is type(meant)
    assert not problems.found


def test_keys_are_always_texts() -> None:
    document, _ = read("1: a\ntrue: b\nnull: c\n", "file")
    assert document.data == {"1": "a", "true": "b", "null": "c"}


def test_every_value_and_key_has_its_place() -> None:
    text = "nodes:\n  broker:\n    topics: [a, 'bc']\n"
    source = read(text, "file")[0].source
    assert source.key(("nodes", "broker")) == Place(2, 3, 6)
    assert source.value(("nodes", "broker", "topics", 1)) == Place(3, 17, 4)
    assert source.value(("nodes", "broker", "missing")) == Place(2, 3, 6)
    assert source.value(("nowhere",)) == Place(1, 1, 1)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_lines_are_counted_with_every_line_ending(ending: str) -> None:
    source = read(f"a: 1{ending}b: 2{ending}c: 3{ending}", "file")[0].source
    place = source.value(("c",))
    assert (place.line, source.text(place)) == (3, "c: 3")


def test_of_a_repeated_key_the_first_counts_and_the_second_is_a_problem() -> None:
    document, problems = read("a: 1\na: {b: 2}\nc: 3\n", "file")
    assert document.data == {"a": 1, "c": 3}
    assert [(p.line, p.column) for p in problems.found] == [(2, 1)]


def test_the_problems_of_a_repeated_section_do_not_move_the_first_ones_places() -> None:
    source = read("a: {x: 1}\na: {x: 2}\n", "file")[0].source
    assert source.value(("a", "x")) == Place(1, 8, 1)


@pytest.mark.parametrize(
    "text",
    [
        "? [a]\n: 1\n",
        "? {a: 1}\n: 2\n",
        "a: &x 1\n",
        "a: *x\n",
        "a: !!str 1\n",
        "a: ! x\n",
        "--- 1\n--- 2\n",
    ],
)
def test_yaml_features_that_no_topology_needs_are_refused(text: str) -> None:
    with pytest.raises(TopologyErrors) as caught:
        read(text, "file")
    assert caught.value.problems[0].hint
