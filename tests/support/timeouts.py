"""End a test that takes too long, with the stacks of all its threads in the report, and let the other tests go on.

pytest-timeout decides when. Its own ways to end a test do not fit: hypothesis catches an exception in the main thread
and goes on with it; its timer thread needs the interpreter, and its stacks get lost under xdist. Here a watchdog in C
writes the stacks to a file and ends the process. xdist then starts another process (`support.distribution`).
"""

import faulthandler
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

_STACKS = pytest.StashKey[int]()  # the descriptor that the watchdog writes to
_FILE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Open the file of stacks. Without xdist, stacks go to stderr, and the session ends."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        config.stash[_STACKS] = os.dup(2)
    else:
        config.stash[_FILE] = _stacks_file(worker["testrunuid"], worker["workerid"])
        config.stash[_STACKS] = os.open(config.stash[_FILE], os.O_WRONLY | os.O_CREAT, 0o600)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the file of stacks, and remove it: no test of this process hung."""
    os.close(config.stash[_STACKS])
    if _FILE in config.stash:
        config.stash[_FILE].unlink(missing_ok=True)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """Start the watchdog."""
    stacks = item.config.stash[_STACKS]
    faulthandler.dump_traceback_later(settings.timeout, exit=True, file=stacks)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer() -> bool:
    """Stop the watchdog."""
    faulthandler.cancel_dump_traceback_later()
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: Any) -> None:
    """Add the stacks to the report of a test whose process has ended. xdist calls this in the distributing process."""
    path = _stacks_file(report.node.workerinput["testrunuid"], report.node.gateway.id)
    if path.exists():
        report.longrepr = f"{report.longrepr}\n{path.read_text()}"
        path.unlink()


def _stacks_file(run: str, worker: str) -> Path:
    return Path(tempfile.gettempdir()) / f"pytest-stacks-{run}-{worker}"
