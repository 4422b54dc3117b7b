"""Doing what helps: which commands, in which order, and whether it helped."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import testbed
from testbed.doctor import remedies
from testbed.doctor.finding import Check, Repair

NO_SUDO = "it needs root, and there is no sudo here"


@dataclass(frozen=True, slots=True)
class Done:
    """A repair that was tried, and what went wrong, if anything."""

    repair: Repair
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A finding that could be repaired, before and after."""

    name: str
    before: Check
    after: Check

    @property
    def repaired(self) -> bool:
        return self.after.status == "ok"


Run = Callable[[Repair], str]


def plan(checks: Iterable[Check], tried: Iterable[Repair] = ()) -> list[Repair]:
    """Each command once, none that was tried; what is to be installed comes first, and all at once."""
    wanted = [repair for check in checks for repair in check.repairs]
    packages = dict.fromkeys(package for repair in wanted for package in repair.packages)
    others = dict.fromkeys(repair for repair in wanted if not repair.packages)
    steps = [*others]
    if packages:
        steps = [remedies.update_packages(), remedies.install(*packages), *steps]
    done = set(tried)
    return [step for step in steps if step not in done]


def carry_out(repairs: Sequence[Repair], run: Run, told: Callable[[Repair], None]) -> list[Done]:
    """One after the other; one that fails does not stop the others."""
    done = []
    for repair in repairs:
        told(repair)
        done.append(Done(repair, run(repair)))
    return done


def run_here(repair: Repair) -> str:
    """Run the command, its output on our standard error; what went wrong, if anything."""
    argv = list(repair.argv)
    if argv[0] == remedies.OURSELVES:
        argv[:1] = [sys.executable, "-m", testbed.__name__]
    if repair.root and os.geteuid() != 0:
        if shutil.which("sudo") is None:
            return NO_SUDO
        argv = ["sudo", *argv]
    root = str(Path(testbed.__file__).resolve().parent.parent)
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    path = f"{os.environ.get('PATH', '')}:{remedies.ADMINISTRATORS}"
    environment = {"PATH": path, "PYTHONPATH": os.pathsep.join(paths)}
    given = {"input": repair.given.encode()} if repair.given else {"stdin": subprocess.DEVNULL}
    sys.stderr.flush()
    try:
        ended = subprocess.run(
            argv, stdout=2, env={**os.environ, **environment}, check=False, **given
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    return f"exit code {ended.returncode}" if ended.returncode else ""


def compare(before: Iterable[Check], after: Iterable[Check]) -> list[Change]:
    """What could be repaired, and what has become of it."""
    now = {check.name: check for check in after}
    return [Change(was.name, was, now[was.name]) for was in before if was.repairs]
