"""`python -m testbed.keeper.calibrating <lab dir> <run> <parent> [--unprivileged]`: measures profiles on scratch links.

It makes a core of its own, in a network namespace of its own, and in it links as a keeper makes them: the same wiring,
the same shaping, a relay of the same program. So nothing of it can meet a node, stand in a capture or count among the
lab's packets, and all of it is gone with this process. Questions as JSON lines on stdin, answers on stdout:

| question | answer |
| --- | --- |
| `{"do": "quick", "emulator", "profiles": [Profile]}` | `results` |
| `{"do": "full", "emulator", "profiles": [Profile], "effort": {}}` | `results`, after lines `{"done", "of", "what"}` |

It ends with its parent, or when stdin does.
"""

import argparse
import gc
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.core import Core
from testbed.keeper.scratch import MOST_LINKS, Bench
from testbed.links.calibration.full import Effort, full, lanes_for_full, units
from testbed.links.calibration.lines import lines_of
from testbed.links.calibration.quick import lanes_for_quick, quick
from testbed.links.calibration.verdict import Calibrated
from testbed.links.namespaces import enter_core
from testbed.links.system import come_first, die_with_parent, wake_precisely
from testbed.links.wiring import make_core
from testbed.places import LabPlace
from testbed.topology.model import Emulator, Profile, Shape

_OBSTACLES = (TestbedError, OSError, KeyError, ValueError, TypeError)


def look_quickly(bench: Bench, profiles: Sequence[Profile]) -> list[Calibrated]:
    """All profiles at once, as far as there may be links."""
    found: list[Calibrated] = []
    for group in _groups([(profile, lanes_for_quick(profile)) for profile in profiles]):
        exchange, lanes = bench.lanes(group)
        found += quick(exchange, lines_of(bench.emulator, lanes))
    return found


def look_fully(
    bench: Bench,
    profiles: Sequence[Profile],
    effort: Effort,
    tell: Callable[[int, int, str], None],
) -> list[Calibrated]:
    """The same, thoroughly; `tell` hears how much of how much is done."""
    groups = _groups([(profile, lanes_for_full(profile, effort)) for profile in profiles])
    planned = [lines_of(bench.emulator, [(p, ()) for p, _ in group]) for group in groups]
    total = sum(units(lines) for lines in planned)
    found: list[Calibrated] = []
    done = 0

    def progress(what: str) -> None:
        nonlocal done
        done += 1
        tell(done, total, what)

    for group in groups:
        exchange, lanes = bench.lanes(group)
        found += full(exchange, lines_of(bench.emulator, lanes), effort, progress)
    return found


def _groups(wanted: Sequence[tuple[Profile, int]]) -> list[list[tuple[Profile, int]]]:
    """As many profiles at a time as there may be links."""
    groups: list[list[tuple[Profile, int]]] = []
    for profile, lanes in wanted:
        if groups and sum(count for _, count in groups[-1]) + lanes <= MOST_LINKS:
            groups[-1].append((profile, lanes))
        else:
            groups.append([(profile, lanes)])
    return groups


class Answers:
    """To questions of the protocol."""

    def __init__(self, core: Core, log: Path) -> None:
        self._core = core
        self._log = log
        self._bench: Bench | None = None

    def to(self, question: dict[str, Any]) -> dict[str, Any]:
        """The fields of one answer."""
        bench = self._bench_of(Emulator(question["emulator"]))
        profiles = [
            Profile(p["name"], Shape(**p["up"]), Shape(**p["down"]), p["mtu"])
            for p in question["profiles"]
        ]
        match question["do"]:
            case "quick":
                found = look_quickly(bench, profiles)
            case "full":
                effort = Effort(**question.get("effort", {}))
                found = look_fully(
                    bench, profiles, effort, lambda n, m, what: say(done=n, of=m, what=what)
                )
            case unknown:
                raise ValueError(f"unknown question {unknown!r}")
        return {"results": [one.to_json() for one in found]}

    def close(self) -> None:
        """End the processes of the scratch links; the kernel takes the links away."""
        self._core.close()

    def _bench_of(self, emulator: Emulator) -> Bench:
        if self._bench is None:
            self._bench = Bench(self._core, emulator, self._log)
        if self._bench.emulator is not emulator:
            raise ValueError(f"these links are made by {self._bench.emulator}, not by {emulator}")
        return self._bench


def say(**words: Any) -> None:
    """One line."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def main() -> None:
    """The process."""
    parser = argparse.ArgumentParser(prog="python -m testbed.keeper.calibrating")
    parser.add_argument("lab", type=Path)
    parser.add_argument("run")
    parser.add_argument("parent", type=int)
    parser.add_argument("--unprivileged", action="store_true")
    asked = parser.parse_args()
    die_with_parent(asked.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    lab = LabPlace(asked.lab)
    answers: Answers | None = None
    for line in sys.stdin:
        try:
            if answers is None:
                answers = _begin(lab, asked.run, asked.unprivileged)
            say(ok=True, **answers.to(json.loads(line)))
        except _OBSTACLES as error:
            hint = f"; {error.hint}" if isinstance(error, TestbedError) and error.hint else ""
            say(ok=False, error=f"{error}{hint}")
    if answers is not None:
        answers.close()


def _begin(lab: LabPlace, run: str, unprivileged: bool) -> Answers:
    enter_core(unprivileged)
    make_core()
    wake_precisely()
    come_first()
    gc.disable()
    return Answers(Core(lab, run), lab.keeper_socket.parent / "calibration.log")


if __name__ == "__main__":
    main()
