"""A process that computes one cell after another: `python -m testbed.sweeps.worker PARENT`, JSON lines in and out.

It ends when nothing more comes, and when its parent dies; a lab that is up is taken down first.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from testbed.backends.common.names import SIMULATED
from testbed.errors import InputError, NameTaken, TestbedError
from testbed.lab.down import bring_down
from testbed.lab.play import play
from testbed.lab.simulate import simulate
from testbed.lab.up import bring_up
from testbed.limits import raise_open_files
from testbed.places import RunPlace
from testbed.progress import Event, Incomplete, Warned
from testbed.records import lab_names
from testbed.sweeps.folder import digest_of
from testbed.syscalls import end_with_parent
from testbed.topology import load


def main() -> None:
    """Answers go to what was stdout; whatever else is printed goes to stderr."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    end_with_parent(int(sys.argv[1]), signal.SIGTERM)
    raise_open_files()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        for line in sys.stdin:
            answers.write(json.dumps(answer(json.loads(line))) + "\n")
            answers.flush()
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)  # the reader may be gone; exit at once


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Compute a cell; its outcome."""
    warnings: list[str] = []

    def emit(event: Event) -> None:
        if isinstance(event, Warned | Incomplete):
            warnings.append(event.text)

    begun = time.monotonic()
    try:
        run = _run(task, emit)
    except TestbedError as error:
        return {"run": None, "error": error.message, "hint": error.hint}
    except Exception as error:  # noqa: BLE001 - whatever it is, the other cells go on
        return {"run": None, "error": f"{type(error).__name__}: {error}", "hint": ""}
    return {"run": run.run, "seconds": time.monotonic() - begun, "warnings": warnings}


def _run(task: dict[str, Any], emit: Any) -> RunPlace:
    file, backend = Path(task["file"]), task["backend"]
    scenario = Path(task["scenario"]) if task["scenario"] else None
    topology = load(file, name=task["name"], scenario=scenario, overrides=task["overrides"])
    if digest_of([file, scenario]) != task["texts"]:
        raise InputError(
            f"{file}, or its scenario's file, was edited while the sweep ran",
            "an edited file is another sweep: undo the edit, or start a new sweep",
        )
    if backend == SIMULATED:
        return simulate(topology, file, emit, scenario=scenario)
    if topology.name in lab_names():
        raise NameTaken(
            f"a lab named {topology.name!r} is up already; each cell starts a lab of its own",
            f"`testbed down {topology.name}`, and sweep again",
        )
    try:
        record = bring_up(topology, file, backend, emit, scenario=scenario)
        play(record, emit)
    finally:
        if topology.name in lab_names():
            bring_down(topology.name, emit)
    return record.run_place


if __name__ == "__main__":
    main()
