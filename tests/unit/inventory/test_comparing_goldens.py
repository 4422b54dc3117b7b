"""`scripts/inventory compare` of golden files: what may differ depends on their kind."""

import ast
import json
from typing import Any

from scripts.inventory_parts.comparing_goldens import goldens, problems
from scripts.inventory_parts.digests import digest
from scripts.inventory_parts.findings import Findings
from scripts.inventory_parts.renames import Renames
from scripts.inventory_parts.static import _byte_constants

MOVED = {"tests/golden/analysis/mesh.json": "tests/golden/analysis/brokers.json"}
RENAMES = Renames(
    names={
        "topology: home": "topology: brokers",
        "request: bear": "request: fork",
    },
    files=MOVED,
    words={"passed_on": "forwarded", "Tell": "Notify"},
)
PROBLEM = """x.yaml:3:10: {said}
  3 |   a: {{b: {value}}}
    |        {carets}
  hint: {said}
"""


def inventory(files: dict[str, str], constants: dict[str, int] | None = None) -> Any:
    hashes = {name: digest(text) for name, text in files.items()}
    return {"files": hashes, "texts": files, "bytes_in_tests": constants or {}}


def compared(old: dict[str, str], new: dict[str, str]) -> Findings:
    found = Findings()
    goldens(inventory(old), inventory(new), RENAMES, found)
    return found


def test_bytes_on_the_wire_may_only_have_other_names() -> None:
    old = {"nodes/words.txt": "Tell 12ab\nGone 0b\n"}
    found = compared(old, {"nodes/words.txt": "Notify 12ab\nGone 0b\n"})
    assert found.losses == []
    assert found.notes == ["nodes/words.txt: the same bytes, other names: Tell -> Notify"]
    for other in ("Tell 12ac\nGone 0b\n", "Gone 0b\nTell 12ab\n", "Tell 12ab\n"):
        assert compared(old, {"nodes/words.txt": other}).losses == ["nodes/words.txt: other bytes"]


def test_a_document_is_compared_under_the_table_and_its_file_s_own_name() -> None:
    old = {"analysis/mesh.json": json.dumps({"run": "mesh", "passed_on": 3, "Tell go": 1})}
    new = {"run": "brokers", "forwarded": 3, "Notify go": 1}
    found = compared(old, {"analysis/brokers.json": json.dumps(new)})
    assert found.losses == []
    assert found.notes == ["1 files are the same under the table"]
    found = compared(old, {"analysis/brokers.json": json.dumps({**new, "forwarded": 4})})
    assert found.losses == ["analysis/brokers.json: /forwarded: 3 -> 4"]


def test_a_file_that_is_nowhere_is_missing_and_one_that_only_moved_is_not() -> None:
    found = compared({"a.txt": "1", "b.txt": "2"}, {"c.txt": "1", "d.txt": "3"})
    assert found.losses == ["b.txt: missing"]
    assert found.notes == ["a.txt: now c.txt", "d.txt: new"]
    assert compared({"a.txt": "1", "b.txt": "1"}, {"b.txt": "1"}).losses == ["a.txt: missing"]


def test_problems_may_have_other_words_at_the_same_place() -> None:
    before = PROBLEM.format(said="old", value="5s", carets="^^")
    after = PROBLEM.format(said="new", value="5s", carets="^^")
    found = compared({"topology/errors/x.txt": before}, {"topology/errors/x.txt": after})
    assert found.losses == []
    assert found.notes == ["topology/errors/x.txt: 1 of 1 problems have other words"]


def test_another_column_underline_or_number_of_problems_is_a_loss() -> None:
    before = PROBLEM.format(said="old", value="5s", carets="^^")
    for after, loss in (
        (before.replace(":10:", ":11:"), "x.yaml:3:10 -> x.yaml:3:11"),
        (before.replace("^^", "^"), "x.yaml:3:10 -> x.yaml:3:10"),
        (before.replace("x.yaml:3", "x.yaml:4"), "x.yaml:3:10 -> x.yaml:4:10"),
        (f"{before}\n{before}", "1 problems -> 2"),
    ):
        found = compared({"topology/e.txt": before}, {"topology/e.txt": after})
        assert found.losses == [f"topology/e.txt: {loss}"]


def test_columns_move_with_a_longer_key_if_the_same_word_is_underlined() -> None:
    before = "x.yaml:3:7: old\n  3 | a: {home: [b, c]}\n    |            ^\n"
    after = "x.yaml:3:10: old\n  3 | a: {brokers: [b, c]}\n    |               ^\n"
    assert [each.underlined for each in problems(before) + problems(after)] == ["b", "b"]
    assert compared({"topology/e.txt": before}, {"topology/e.txt": after}).losses == []
    other = after.replace("  ^", "     ^")
    assert compared({"topology/e.txt": before}, {"topology/e.txt": other}).losses == [
        "topology/e.txt: x.yaml:3:7 -> x.yaml:3:10"
    ]


def test_a_topology_may_have_other_keys_and_comments_but_no_other_values() -> None:
    old = {"topology/x.yaml": "# who\na: {home: b}\n"}
    assert compared(old, {"topology/x.yaml": "# which\na: {brokers: b}\n"}).losses == []
    for other in ("a: {brokers: c}\n", "a:\n{brokers: b}\n", "a: {brokers: b, c: d}\n"):
        found = compared(old, {"topology/x.yaml": other})
        assert found.losses == ["topology/x.yaml: other content"]


def test_a_paragraph_that_is_no_problem_may_not_change() -> None:
    found = compared({"topology/e.txt": "delay=1: no\n"}, {"topology/e.txt": "delay=1: never\n"})
    assert len(found.losses) == 1


def test_byte_constants_that_are_a_text_follow_the_table_and_others_are_kept() -> None:
    old, new = (
        dict.fromkeys(_byte_constants(ast.parse(code)), 1)
        for code in ("""b'{"do": "bear"}', '00112233445566778899'""", """b'{"do": "fork"}'""")
    )
    found = Findings()
    goldens(inventory({}, old), inventory({}, new), RENAMES, found)
    gone = digest(bytes.fromhex("00112233445566778899"))
    assert found.losses == [f"1 byte constants of the tests are gone: {gone}"]
    assert found.notes == []
