"""`python -m testbed.keeper <lab dir> <run> [--unprivileged]`: starts a lab's keeper and returns once it answers.

Standard output says `{"pid": ...}`, or `{"error": ..., "hint": ...}` with exit code 1. Started by `Keeper.launch`,
which puts the lab's marks into the environment.
"""

import argparse
import json
import os
import socket
import sys
from pathlib import Path

from testbed.errors import TestbedError
from testbed.keeper.core import Core
from testbed.keeper.server import Server
from testbed.limits import raise_open_files
from testbed.links.namespaces import enter_core
from testbed.links.wiring import make_core
from testbed.places import MARK, LabPlace
from testbed.syscalls import become_subreaper


def main() -> int:
    """Start the keeper as a process of its own, and report its pid."""
    parser = argparse.ArgumentParser(prog="python -m testbed.keeper")
    parser.add_argument("lab", type=Path)
    parser.add_argument("run")
    parser.add_argument("--unprivileged", action="store_true")
    arguments = parser.parse_args()
    lab = LabPlace(arguments.lab)
    report = os.dup(1)
    try:
        if os.environ.get(MARK) != str(lab.folder):
            raise TestbedError(f"{MARK} must be {lab.folder} in the keeper's environment")
        enter_core(arguments.unprivileged)
        make_core()
        listening = _listen(lab)
    except (TestbedError, OSError) as error:
        hint = error.hint if isinstance(error, TestbedError) else ""
        _report(report, {"error": str(error), "hint": hint})
        return 1
    _leave_terminal(lab)
    if pid := os.fork():
        _report(report, {"pid": pid})
        os._exit(0)
    os.close(report)
    raise_open_files()
    become_subreaper()
    try:
        Server(listening, Core(lab, arguments.run)).run()
    finally:
        lab.keeper_socket.unlink(missing_ok=True)
    return 0


def _listen(lab: LabPlace) -> socket.socket:
    path = lab.keeper_socket
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    before = os.umask(0o077)  # only the lab's owner may ask
    try:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen(64)
    finally:
        os.umask(before)
    return listening


def _leave_terminal(lab: LabPlace) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(
        lab.keeper_socket.parent / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
    )
    for own, now in ((0, nothing), (1, log), (2, log)):
        os.dup2(now, own)
    os.close(nothing)
    os.close(log)
    os.chdir("/")


def _report(report: int, message: dict[str, object]) -> None:
    os.write(report, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
