"""A test that takes too long fails with the stacks of its threads, and the other tests run."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
CONFTEST = """
import sys
sys.path.insert(0, {tests!r})
from support.distribution import Groups

pytest_plugins = ("support.timeouts",)

def pytest_xdist_make_scheduler(config, log):
    return Groups(config, log)
"""
HANGING = """
import time

def test_before(): pass

def test_that_hangs():
    time.sleep(600)

def test_after(): pass

def test_at_the_end(): pass
"""
OTHERS = """
def test_one(): pass

def test_two(): pass
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.format(tests=str(TESTS)))
    (folder / "test_hanging.py").write_text(HANGING)
    (folder / "test_others.py").write_text(OTHERS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "8", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_other_tests_run_and_the_report_shows_where_the_test_hung(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "-n", "2", "--no-loadscope-reorder")
    assert done.returncode == 1
    assert "1 failed, 5 passed" in done.stdout
    assert "crashed while running 'test_hanging.py::test_that_hangs'" in done.stdout
    assert "line 7 in test_that_hangs" in done.stdout


def test_without_other_processes_the_session_ends_with_the_stacks(tmp_path: Path) -> None:
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert "line 7 in test_that_hangs" in done.stdout + done.stderr
