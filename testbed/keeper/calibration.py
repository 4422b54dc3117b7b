"""`python -m testbed.keeper.calibration <lab dir> <run> <parent> [--unprivileged]`: measures profiles on scratch links.

It makes a core of its own in its own network namespace, and links as a keeper makes them: the same wiring, the same
shaping, the same relay program. So its packets reach no node, no capture and no counter of the lab, and all of it is
gone with this process. Questions are JSON lines on stdin, answers are JSON lines on stdout:

| question | answer |
| --- | --- |
| `{"do": "quick", "emulator", "profiles": [Profile]}` | `results` |
| `{"do": "full", "emulator", "profiles": [Profile], "effort": {}}` | `results`, after lines `{"done", "of", "what"}` |

It ends with its parent, or when stdin does.
"""

import argparse
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from secrets import randbits
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.core import Core
from testbed.links.calibration.exchange import Exchange
from testbed.links.calibration.measurement import (
    Effort,
    full,
    lanes_for_full,
    lanes_for_quick,
    quick,
    units,
)
from testbed.links.calibration.probes import probed_directions
from testbed.links.calibration.verdict import Calibrated
from testbed.links.namespaces import enter_core
from testbed.links.spec import LinkSpec
from testbed.links.wiring import make_core
from testbed.places import LabPlace
from testbed.syscalls import die_with_parent, disable_timer_slack, use_realtime_priority
from testbed.topology.model import Emulator, Profile, Shape

# Scratch links, made by a core like a lab's own links.


NETWORK = "198.18"  # for benchmarks of network devices (RFC 2544)
MOST_LINKS = 60  # at the same time
_PREFIX_LENGTH = 16
Lanes = list[tuple[Profile, tuple[str, ...]]]


class ScratchLinks:
    """Scratch links of one emulator in this process's own core.

    They stay for the next question, as removing links takes longer than making them. The kernel removes all of them
    at once when this process ends.
    """

    def __init__(self, core: Core, emulator: Emulator, log: Path) -> None:
        self.emulator = emulator
        self._core = core
        self._log = log
        self._exchange: Exchange | None = None
        self._standing: dict[Profile, tuple[str, ...]] = {}
        self._descriptors: list[int] = []

    def lanes(self, wanted: Sequence[tuple[Profile, int]]) -> tuple[Exchange, Lanes]:
        """Provide so many links of each profile, shaped and up."""
        missing = [
            (profile, count - len(self._standing.get(profile, ())))
            for profile, count in wanted
            if count > len(self._standing.get(profile, ()))
        ]
        if self._count() + sum(count for _, count in missing) > MOST_LINKS:
            self._clear()
            missing = list(wanted)
        if missing:
            self._add(missing)
        assert self._exchange is not None
        return self._exchange, [
            (profile, self._standing[profile][:count]) for profile, count in wanted
        ]

    def _count(self) -> int:
        return sum(map(len, self._standing.values()))

    def _add(self, missing: Sequence[tuple[Profile, int]]) -> None:
        profiles = [profile for profile, count in missing for _ in range(count)]
        first = self._count() + 1
        specs = [_spec(number, profile) for number, profile in enumerate(profiles, first)]
        try:
            pids = self._make(specs, profiles)
        except BaseException:
            self._core.unwire([spec.node for spec in specs])
            raise
        self._exchange = self._exchange or Exchange(specs[0].gateway)
        for spec, profile in zip(specs, profiles, strict=True):
            self._descriptors.append(os.open(f"/proc/{pids[spec.node]}/ns/net", os.O_RDONLY))
            self._exchange.open(spec.node, spec.address, self._descriptors[-1], spec.far_if)
            self._standing[profile] = (*self._standing.get(profile, ()), spec.node)

    def _clear(self) -> None:
        if self._exchange is not None:
            self._exchange.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._core.unwire([name for names in self._standing.values() for name in names])
        self._exchange, self._standing, self._descriptors = None, {}, []

    def _make(self, specs: Sequence[LinkSpec], profiles: Sequence[Profile]) -> dict[str, int]:
        idle = ["sleep", "1000000"]
        nodes = [{"name": s.node, "argv": idle, "env": {}, "stderr": str(self._log)} for s in specs]
        spawned = self._core.spawn(nodes)
        if spawned["failed"]:
            raise TestbedError(f"no scratch link: {next(iter(spawned['failed'].values()))}")
        self._core.wire(self.emulator, [asdict(spec) for spec in specs])
        self.shape([spec.node for spec in specs], profiles)
        self._core.capture([spec.node for spec in specs])
        pids: dict[str, int] = spawned["pids"]
        return pids

    def shape(self, names: Sequence[str], profiles: Sequence[Profile]) -> None:
        """Shape links as the profiles ask, with another seed each time, so that attempts are independent."""
        links = [
            {"node": name, "up": asdict(profile.up), "down": asdict(profile.down)}
            for name, profile in zip(names, profiles, strict=True)
        ]
        self._core.shape(links, seed=randbits(32))


def _spec(number: int, profile: Profile) -> LinkSpec:
    high, low = divmod(number, 256)
    return LinkSpec(
        node=f"scratch-{number}",
        number=number,
        address=f"{NETWORK}.{high}.{low}",
        prefix_length=_PREFIX_LENGTH,
        mac=f"02:74:63:00:{high:02x}:{low:02x}",
        mtu=profile.mtu,
        alias="testbed calibration",
    )


_ERRORS = (TestbedError, OSError, KeyError, ValueError, TypeError)


def measure_quickly(scratch: ScratchLinks, profiles: Sequence[Profile]) -> list[Calibrated]:
    """Measure all profiles quickly, as many at once as there may be links."""
    found: list[Calibrated] = []
    for group in _groups([(profile, lanes_for_quick(profile)) for profile in profiles]):
        exchange, lanes = scratch.lanes(group)
        found += quick(exchange, probed_directions(scratch.emulator, lanes))
    return found


def measure_fully(
    scratch: ScratchLinks,
    profiles: Sequence[Profile],
    effort: Effort,
    on_progress: Callable[[int, int, str], None],
) -> list[Calibrated]:
    """Measure all profiles thoroughly; call `on_progress` with the finished and the total number of units."""
    groups = _groups([(profile, lanes_for_full(profile, effort)) for profile in profiles])
    planned = [probed_directions(scratch.emulator, [(p, ()) for p, _ in group]) for group in groups]
    total = sum(units(lines) for lines in planned)
    found: list[Calibrated] = []
    done = 0

    def progress(what: str) -> None:
        nonlocal done
        done += 1
        on_progress(done, total, what)

    for group in groups:
        exchange, lanes = scratch.lanes(group)
        found += full(exchange, probed_directions(scratch.emulator, lanes), effort, progress)
    return found


def _groups(wanted: Sequence[tuple[Profile, int]]) -> list[list[tuple[Profile, int]]]:
    """Groups of profiles whose links may exist at the same time."""
    groups: list[list[tuple[Profile, int]]] = []
    for profile, lanes in wanted:
        if groups and sum(count for _, count in groups[-1]) + lanes <= MOST_LINKS:
            groups[-1].append((profile, lanes))
        else:
            groups.append([(profile, lanes)])
    return groups


class Answers:
    """Answers the questions of the protocol."""

    def __init__(self, core: Core, log: Path) -> None:
        self._core = core
        self._log = log
        self._scratch: ScratchLinks | None = None

    def to(self, question: dict[str, Any]) -> dict[str, Any]:
        """The fields of one answer."""
        scratch = self._scratch_links(Emulator(question["emulator"]))
        profiles = [
            Profile(p["name"], Shape(**p["up"]), Shape(**p["down"]), p["mtu"])
            for p in question["profiles"]
        ]
        match question["do"]:
            case "quick":
                found = measure_quickly(scratch, profiles)
            case "full":
                effort = Effort(**question.get("effort", {}))
                found = measure_fully(
                    scratch,
                    profiles,
                    effort,
                    lambda n, m, what: write_message(done=n, of=m, what=what),
                )
            case unknown:
                raise ValueError(f"unknown question {unknown!r}")
        return {"results": [one.to_json() for one in found]}

    def close(self) -> None:
        """End the processes of the scratch links; the kernel removes the links."""
        self._core.close()

    def _scratch_links(self, emulator: Emulator) -> ScratchLinks:
        if self._scratch is None:
            self._scratch = ScratchLinks(self._core, emulator, self._log)
        if self._scratch.emulator is not emulator:
            raise ValueError(f"these links are made by {self._scratch.emulator}, not by {emulator}")
        return self._scratch


def write_message(**fields: Any) -> None:
    """Write one JSON line."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer questions until the end of standard input."""
    parser = argparse.ArgumentParser(prog="python -m testbed.keeper.calibration")
    parser.add_argument("lab", type=Path)
    parser.add_argument("run")
    parser.add_argument("parent", type=int)
    parser.add_argument("--unprivileged", action="store_true")
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    lab = LabPlace(arguments.lab)
    answers: Answers | None = None
    for line in sys.stdin:
        try:
            if answers is None:
                answers = _begin(lab, arguments.run, arguments.unprivileged)
            write_message(ok=True, **answers.to(json.loads(line)))
        except _ERRORS as error:
            hint = f"; {error.hint}" if isinstance(error, TestbedError) and error.hint else ""
            write_message(ok=False, error=f"{error}{hint}")
    if answers is not None:
        answers.close()


def _begin(lab: LabPlace, run: str, unprivileged: bool) -> Answers:
    enter_core(unprivileged)
    make_core()
    disable_timer_slack()
    use_realtime_priority()
    gc.disable()
    return Answers(Core(lab, run), lab.keeper_socket.parent / "calibration.log")


if __name__ == "__main__":
    main()
