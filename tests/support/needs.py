"""What tests need of the machine: skip those that cannot run here, and record which kinds of tests ran.

A test that cannot run is skipped with the reason; where $CI is set, such a skip is a failure. The last line of the
output names the command that installs what is missing. With $TESTS_RAN, the file of that name gets a line of JSON:
how many tests of each marker passed. `scripts/tests-ran` judges these lines.
"""

import functools
import json
import os
import shutil
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

RECORD = "TESTS_RAN"


@functools.cache
def lacking(marker: str) -> str | None:  # noqa: PLR0911 - one answer for each
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


def pytest_configure(config: pytest.Config) -> None:
    """Count the outcomes where all reports end: with xdist, in the process that distributes the tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcomes(config), "outcomes")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without netem in this kernel, leave its tests to a machine that has it (`machine`)."""
    of_netem = [item for item in items if item.get_closest_marker("netem")]
    if of_netem and not _kernel_has_netem():
        config.hook.pytest_deselected(items=of_netem)
        items[:] = [item for item in items if item not in of_netem]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that cannot run here."""
    for marker in item.iter_markers():
        if reason := lacking(marker.name):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip on CI into a failure."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped on CI: {report.longrepr}"
    return report


class Outcomes:
    """How many tests of each marker passed, and how many were skipped for which reason."""

    def __init__(self, config: pytest.Config) -> None:
        self._markers = {line.partition(":")[0] for line in config.getini("markers")}
        self._passed: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed and report.when == "call":
            self._passed.update(self._markers & report.keywords.keys())
        elif report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_sessionfinish(self) -> None:
        if path := os.environ.get(RECORD):
            with Path(path).open("a") as file:
                file.write(json.dumps(dict(sorted(self._passed.items()))) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """After everything else: what the machine lacks, and what helps."""
        if self._skipped:
            reasons = "; ".join(f"{count} for: {reason}" for reason, count in self._skipped.items())
            config.get_terminal_writer().line(
                f"{self._skipped.total()} tests were skipped ({reasons}). "
                "`make test-tools` installs all that they need."
            )
