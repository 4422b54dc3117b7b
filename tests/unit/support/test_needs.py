"""Skipped tests are counted at the end, fail on CI, and a kind of tests that did not run is named."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.needs import RECORD

TESTS = Path(__file__).resolve().parents[2]
FILES = {
    "conftest.py": f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
pytest_plugins = ("support.needs",)
""",
    "pytest.ini": """
[pytest]
markers =
    ansible: runs playbooks
    spark: starts Spark
""",
    "test_some.py": """
import pytest

@pytest.mark.spark
def test_that_passes(): pass

@pytest.mark.spark
def test_that_fails(): assert False

@pytest.fixture
def board(): pytest.skip("no board")

@pytest.mark.ansible
@pytest.mark.parametrize("each", [1, 2])
def test_that_cannot_run(board, each): pass
""",
}


def run_pytest(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", RECORD)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_the_last_line_names_the_command_that_installs_what_is_missing(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = run_pytest(tmp_path, *options)
    assert "1 failed, 1 passed, 2 skipped" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "2 tests were skipped (2 for: no board). `make test-tools` installs all that they need."
    )


def test_on_ci_a_skipped_test_fails(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, CI="true")
    assert "1 failed, 1 passed, 2 errors" in done.stdout
    assert "was skipped on CI" in done.stdout


def test_each_run_records_how_many_tests_of_a_marker_passed(tmp_path: Path) -> None:
    record = tmp_path / "ran"
    for options in ((), ("-n", "2")):
        run_pytest(tmp_path, *options, **{RECORD: str(record)})
    assert [json.loads(line) for line in record.read_text().splitlines()] == [{"spark": 1}] * 2


def judge_record(
    record: Path, repository: Path, *lines: dict[str, int]
) -> subprocess.CompletedProcess[str]:
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return subprocess.run(
        [sys.executable, repository / "scripts" / "tests-ran", record],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_kind_of_tests_that_did_not_run_is_named(tmp_path: Path, repository: Path) -> None:
    every = ("netns", "root", "machine", "long", "docker", "arm", "spark", "browser", "ansible")
    whole = dict.fromkeys(every, 1)
    short = {marker: 1 for marker in every if marker not in ("arm", "machine")}
    assert judge_record(tmp_path / "ran", repository, whole).returncode == 0
    assert (
        judge_record(tmp_path / "ran", repository, short, {"arm": 2, "machine": 1}).returncode == 0
    )
    done = judge_record(tmp_path / "ran", repository, short)
    assert done.returncode == 1
    assert "No test of these ran: machine, arm." in done.stdout
