"""`scripts/inventory compare` of tests: which function of before is which one now, one to one."""

from pathlib import Path
from typing import Any

import pytest

from scripts.inventory_parts.comparing_tests import tests as compare_tests
from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames
from scripts.inventory_parts.static import _test_functions
from scripts.inventory_parts.trees import Tree

RENAMES = Renames(files={"old.py": "new.py"}, names={"new.py::test_row": "new.py::test_by_row"})
Rows = list[tuple[str, str, int]]  # where, shape, number of ids


def inventory(rows: Rows) -> Any:
    """Functions with a shape and a text each: `shape/text` or `shape`."""
    ids = [
        f"{where}[{n}]" if count > 1 else where for where, _, count in rows for n in range(count)
    ]
    hashes = {where: [shape, shape.partition("/")[0]] for where, shape, _ in rows}
    return {"ids": sorted(ids), "functions": hashes}


def compared(old: Rows, new: Rows, show_all: bool = False) -> Findings:
    found = Findings(show_all)
    compare_tests(inventory(old), inventory(new), RENAMES, found)
    return found


def test_the_mapped_id_counts_before_the_structure() -> None:
    old = [("old.py::test_a", "x", 1), ("old.py::test_row", "y", 1)]
    assert compared(old, [("new.py::test_a", "y", 1), ("new.py::test_by_row", "x", 1)]).are_none


def test_a_name_may_be_in_another_file_if_as_many_functions_have_it() -> None:
    old = [("old.py::test_a", "x", 1)]
    found = compared(old, [("other.py::test_a", "y", 1)])
    assert (found.losses, found.notes) == ([], ["1 matched by name in another file"])
    found = compared(old, [("other.py::test_a", "y", 1), ("more.py::test_a", "z", 1)])
    assert found.losses == ["missing: old.py::test_a"]


def test_functions_of_a_file_are_matched_by_structure_and_in_order() -> None:
    old = [("old.py::test_z", "x", 1), ("old.py::test_a", "x", 1), ("old.py::test_m", "y", 1)]
    new = [("new.py::test_c", "y", 1), ("new.py::test_e", "x", 1), ("new.py::test_d", "x", 1)]
    found = compared(old, new, show_all=True)
    assert found.losses == []
    assert found.notes[0] == "3 matched by structure in the same file"
    assert set(found.notes[1:]) == {
        "old.py::test_z -> test_e",
        "old.py::test_a -> test_d",
        "old.py::test_m -> test_c",
    }
    assert compared(old, new).notes == ["3 matched by structure in the same file"]


def test_equal_texts_count_before_the_order() -> None:
    old = [("old.py::test_a", "x/1", 1), ("old.py::test_b", "x/2", 1)]
    new = [("new.py::test_c", "x/2", 1), ("new.py::test_d", "x/3", 1)]
    found = compared(old, new, show_all=True)
    assert set(found.notes[1:]) == {"old.py::test_b -> test_c", "old.py::test_a -> test_d"}


def test_what_is_left_of_a_file_is_matched_in_order_and_always_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = [(f"old.py::test_{n:02}", f"x{n}", 1) for n in range(40)]
    found = compared(old, [(f"new.py::test_now_{n:02}", f"y{n}", 1) for n in range(40)])
    assert found.losses == []
    found.show("tests")
    assert "by order: old.py::test_39 -> test_now_39" in capsys.readouterr().out


@pytest.mark.parametrize(
    "new",
    [
        [("new.py::test_c", "p", 2)],
        [("new.py::test_c", "p", 2), ("new.py::test_d", "q", 1), ("new.py::test_e", "r", 1)],
        [("new.py::test_c", "p", 1), ("new.py::test_d", "q", 1)],
        [("new.py::test_c", "p", 1), ("new.py::test_d", "q", 2)],
    ],
    ids=["fewer functions", "more functions", "fewer ids", "ids in another order"],
)
def test_nothing_is_guessed_if_numbers_differ(new: Rows) -> None:
    found = compared([("old.py::test_a", "x", 2), ("old.py::test_b", "y", 1)], new)
    assert found.losses == ["missing: old.py::test_a (2 ids)", "missing: old.py::test_b"]
    assert found.guesses == []


def test_a_function_of_a_divided_file_is_found_by_structure() -> None:
    old = [("old.py::test_a", "x", 1), ("old.py::test_b", "y", 1)]
    found = compared(old, [("new.py::test_c", "x", 1), ("part.py::test_d", "y", 1)])
    assert found.losses == []
    assert "1 matched by structure in another file" in found.notes


def test_each_function_has_one_partner() -> None:
    old = [("old.py::test_a", "x", 1), ("old.py::test_b", "x", 1)]
    found = compared(old, [("new.py::test_c", "x", 1)])
    assert found.losses == ["missing: old.py::test_b"]


def test_functions_without_a_definition_have_no_structure() -> None:
    found = Findings()
    compare_tests({"ids": ["a.py::A::run"]}, {"ids": ["b.py::B::run"]}, RENAMES, found)
    assert found.losses == ["missing: a.py::A::run"]


def test_fewer_ids_are_lost_more_are_noted_and_other_words_counted() -> None:
    old, new = {"ids": ["a.py::t[1]", "a.py::t[2]"]}, {"ids": ["a.py::t[1]"]}
    found = Findings()
    compare_tests(old, new, RENAMES, found)
    assert found.losses == ["a.py::t: 2 ids -> 1; gone: 2"]
    found = Findings()
    compare_tests(new, old, RENAMES, found)
    assert (found.losses, found.notes) == ([], ["a.py::t: 1 ids -> 2; gone: none"])
    found = Findings(show_all=True)
    compare_tests(new, {"ids": ["a.py::t[one]"]}, RENAMES, found)
    assert found.losses == []
    assert found.notes[1:] == ["a.py::t: 1 -> one"]


def test_the_inventory_has_the_functions_in_the_order_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        'def test_b():\n    assert one == "x"\n\n\n'
        'class TestC:\n    def test_a(self):\n        assert two == "y"\n\n\n'
        "TestZ = Machine.TestCase\nTestM = Other.TestCase\n"
    )
    found = dict(_test_functions(Tree(tmp_path), ["test_x.py"]))
    assert [place.removeprefix("test_x.py::") for place in found] == [
        "test_b",
        "TestC",
        "TestC::test_a",
        "TestZ::runTest",
        "TestM::runTest",
    ]
    (exact, shape), (other_exact, other_shape) = (
        found[f"test_x.py::{name}"] for name in ("test_b", "TestC::test_a")
    )
    assert exact != other_exact
    assert shape != other_shape, "the other one has a parameter"
