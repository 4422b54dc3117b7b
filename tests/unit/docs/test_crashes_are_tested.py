"""The pages on crashes and promises name a test for each of their claims, and each of these tests exists."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

FILE = re.compile(r"`(test_\w+\.py)(?:::(test_\w+)(…?))?`")
SAME_FILE = re.compile(r"`…::(test_\w+)(…?)`")


@pytest.mark.parametrize(("page", "least"), [("crashes.md", 15), ("promises.md", 10)])
def test_every_row_names_tests_that_exist(repository: Path, page: str, least: int) -> None:
    files: defaultdict[str, str] = defaultdict(str)
    for path in (repository / "tests").rglob("test_*.py"):
        files[path.name] += path.read_text()
    text = (repository / "docs" / "explanation" / page).read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) > least
    for name, test, shortened in FILE.findall(text):
        assert name in files, f"{name} does not exist"
        wanted = f"def {test}" if shortened or not test else f"def {test}("
        assert wanted in files[name] or not test, f"{name} has no {test}"
    for test, shortened in SAME_FILE.findall(text):
        wanted = f"def {test}" if shortened else f"def {test}("
        assert any(wanted in source for source in files.values()), test


def test_every_row_of_the_crash_tables_names_a_test(repository: Path) -> None:
    text = (repository / "docs" / "explanation" / "crashes.md").read_text()
    tables = text.split("## The machine reboots")[0]
    for line in tables.splitlines():
        if line.startswith("| ") and not line.startswith(("| what dies", "| ---")):
            assert FILE.search(line), f"no test shows: {line}"


def test_every_row_on_what_breaks_names_a_test(repository: Path) -> None:
    text = (repository / "docs" / "explanation" / "promises.md").read_text()
    table = text.split("## What holds when something breaks")[1].split("## Not promised")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert rows
    for line in rows:
        assert FILE.search(line) or line.endswith("| the same |"), f"no test shows: {line}"


@pytest.mark.parametrize(
    ("page", "other"), [("crashes.md", "promises.md"), ("promises.md", "crashes.md")]
)
def test_each_of_the_two_pages_begins_with_a_link_to_the_other(
    repository: Path, page: str, other: str
) -> None:
    text = (repository / "docs" / "explanation" / page).read_text()
    first = text.split("\n\n")[1]
    assert f"]({other}" in first
