"""Fixtures that all tests share, and the order of the tests."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.distribution import Groups, is_long, turn

pytest_plugins = ("support.exploring", "support.needs", "support.timeouts")

for size in ("COLUMNS", "LINES"):  # of the terminal; test runners that work in parallel set them
    os.environ.pop(size, None)
# Tests start thousands of our processes. Without cached bytecode each of them would compile our modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A shell's background processes ignore Ctrl-C, and so would every process that a test starts in order to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests use the class archive of Java if there is one; those on archives make their own.
os.environ.setdefault("TESTBED_CLASS_ARCHIVE", "keep")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    return Groups(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from modules and collected tests: they stay, and searching them again and again
    took a fifth of the time of all tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # native modules report as leaks what is left at the end


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the longest tests first."""
    items.sort(key=lambda item: turn(item.nodeid))
    for item in items:
        if is_long(item.nodeid):
            item.add_marker(pytest.mark.long)


@pytest.fixture
def repository() -> Path:
    """The top of the source tree."""
    return REPOSITORY


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep labs and runs of this test in a folder of their own (short: Unix socket paths are limited)."""
    folder = Path(tempfile.mkdtemp(prefix="tb-", dir="/tmp"))
    folder.chmod(0o755)
    monkeypatch.setenv("TESTBED_STATE", str(folder / "s"))
    monkeypatch.setenv("TESTBED_CAPTURES", str(folder / "c"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """wait_until(condition, seconds): wait until the condition holds, or fail the test."""
    import time

    def wait(condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(0.02)

    return wait
