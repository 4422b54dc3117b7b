"""Fixtures that all tests share: labs in a state folder of their own, and skips that name their reason.

A test that cannot run on this machine is skipped with the reason; where $CI is set, such a skip is a failure.
"""

import functools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support.distribution import Groups, is_long, turn

pytest_plugins = ("support.timeouts",)

# On CI the examples are fixed, so that a failure comes from the change; elsewhere hypothesis draws new ones each time.
settings.register_profile(
    "default",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="CI" in os.environ,
)
settings.load_profile("default")

for size in ("COLUMNS", "LINES"):  # of the terminal; test runners that work in parallel set them
    os.environ.pop(size, None)
# Tests start thousands of our processes. Without cached bytecode each of them would compile our modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A shell's background processes ignore Ctrl-C, and so would every process that a test starts in order to interrupt it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parent.parent


@functools.cache
def _lacking(marker: str) -> str | None:  # noqa: PLR0911 - one answer for each
    """Why tests of this marker cannot run here, or None."""
    if marker == "root":
        return None if os.geteuid() == 0 else "not root"
    if marker == "netns":
        from testbed.links.probe import probe_machine

        found = probe_machine()
        return None if found.namespaces else found.reason
    if marker == "docker":
        from testbed.backends.docker.engine import engine_answers

        answers, reason = engine_answers()
        return None if answers else f"{reason}; `make engine` installs and starts one"
    if marker == "arm":
        from testbed.backends.docker.platforms import platform_verdicts

        foreign = (verdict for verdict in platform_verdicts().values() if not verdict.runs)
        return next((f"{verdict.how}; {verdict.fix}" for verdict in foreign), None)
    if marker == "machine":
        found = shutil.which("qemu-system-x86_64") and shutil.which("cpio")
        needed = "apt-get install --no-install-recommends qemu-system-x86 cpio"
        return None if found else f"no qemu-system-x86_64 or no cpio; {needed}"
    if marker == "browser":
        return None if shutil.which("chromium") else "no chromium; apt-get install chromium"
    return None


@functools.cache
def _kernel_has_netem() -> bool:
    from testbed.links.probe import probe_machine

    return probe_machine().capabilities.netem


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start the longest tests first. Without netem in this kernel, leave its tests to a machine that has it."""
    items.sort(key=lambda item: turn(item.nodeid))
    for item in items:
        if is_long(item.nodeid):
            item.add_marker(pytest.mark.long)
    of_netem = [item for item in items if item.get_closest_marker("netem")]
    if of_netem and not _kernel_has_netem():
        config.hook.pytest_deselected(items=of_netem)
        items[:] = [item for item in items if item not in of_netem]


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        if reason := _lacking(marker.name):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped on CI: {report.longrepr}"
    return report


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

    def wait(condition: Callable[[], object], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s"
            time.sleep(0.02)

    return wait
