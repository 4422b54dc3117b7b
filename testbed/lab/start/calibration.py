"""Calibrates links: each `up` measures every profile in use, and writes the result to the manifest."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from testbed.errors import TestbedError
from testbed.keeper.client import environment
from testbed.keeper.pipes import Lines
from testbed.links.namespaces import privileged
from testbed.places import LabPlace, RunPlace, marks
from testbed.progress import Emit, Incomplete, StageAdvanced, StageEnded, StageStarted, Warned
from testbed.records import extend_manifest, update_manifest
from testbed.topology.model import Emulator, Profile, Shape, Topology

# The client of the measuring process (`testbed.keeper.calibration`).


PATIENCE_S = 60.0  # between two signs of life
END_S = 5.0
Result = dict[str, Any]


class CalibrationFailed(TestbedError):
    """Nothing could be measured."""


class Calibrator:
    """The measuring process; use as a context manager, which ends it with all it made."""

    def __init__(self, place: LabPlace, run: str, emulator: str) -> None:
        self._emulator = emulator
        log = place.keeper_socket.parent / "calibration.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        unprivileged = [] if privileged() else ["--unprivileged"]
        command = [sys.executable, "-P", "-m", "testbed.keeper.calibration", str(place.folder), run]
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, str(os.getpid()), *unprivileged],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**environment(), **marks(place, run, "calibration")},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process, and with it all that it made. Kill it at once after an error."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if kind is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
        self._process.kill()
        self._process.wait()

    def ask(self, do: str, profiles: Sequence[Profile], **fields: Any) -> None:
        """Start a measurement; do not wait for its results."""
        question = {
            "do": do,
            "emulator": self._emulator,
            "profiles": [asdict(profile) for profile in profiles],
            **fields,
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._gone() from error

    def results(
        self,
        on_progress: Callable[[dict[str, Any]], None] = lambda _: None,
        patience_s: float = PATIENCE_S,
    ) -> list[Result]:
        """Wait for the results; call `on_progress` with each progress message."""
        while True:
            message = json.loads(self._line(patience_s))
            if "ok" not in message:
                on_progress(message)
                continue
            if not message["ok"]:
                raise CalibrationFailed(message["error"])
            results: list[Result] = message["results"]
            return results

    def _line(self, patience_s: float) -> bytes:
        try:
            return self._lines.next(time.monotonic() + patience_s)
        except TimeoutError:
            raise CalibrationFailed(
                f"no answer within {patience_s:.0f} s", f"see {self._log}"
            ) from None
        except EOFError:
            raise self._gone() from None

    def _gone(self) -> CalibrationFailed:
        return CalibrationFailed("the measuring process has ended", f"see {self._log}")


STAGE = "calibrating links"
SKIP_S = 1.0  # at the beginning of each stream: TCP has to find the rate first
PAUSE_S = 0.3  # before another attempt
ATTEMPTS = 3  # of a quick measurement: the machine may have been busy for a moment


@contextmanager
def calibrated(
    place: LabPlace,
    run: RunPlace,
    topology: Topology,
    emulator: str,
    emit: Emit,
    thorough_s: float | None = None,
) -> Iterator[None]:
    """Measure the links: quickly while the body runs, or, with seconds of TCP, thoroughly after it.

    Warn of links that are not as asked, and of a failed measurement: the lab is up all the same.
    """
    profiles = Profiles(topology)
    if emulator not in set(Emulator) or not profiles.distinct:
        yield
        return
    with Calibrator(place, run.run, emulator) as calibrator:
        if thorough_s is None:
            calibrator.ask("quick", profiles.distinct)
        yield
        try:
            if thorough_s is None:
                results = measure_quickly(calibrator, profiles, emit)
            else:
                results = measure_fully(calibrator, profiles, emit, thorough_s)
        except CalibrationFailed as error:
            results = []
            _report_not_calibrated(run, error, emit, asked=thorough_s is not None)
    update_manifest(run, calibration=results)
    _warn_of(results, emit)


class Profiles:
    """The profiles that a topology's nodes use; profiles that differ only in their names are measured once."""

    def __init__(self, topology: Topology) -> None:
        used = {node.profile for node in topology.nodes}
        self._all = [profile for profile in topology.profiles if profile.name in used]
        self._names: dict[tuple[Shape, Shape, int], list[str]] = {}
        for profile in self._all:
            self._names.setdefault(_shape_key(profile), []).append(profile.name)
        self.distinct = [p for p in self._all if self._names[_shape_key(p)][0] == p.name]

    def spread(self, results: Sequence[Result]) -> list[Result]:
        """A result for each name."""
        alike = {names[0]: names for names in self._names.values()}
        return [
            {**result, "profile": name} for result in results for name in alike[result["profile"]]
        ]


def _shape_key(profile: Profile) -> tuple[Shape, Shape, int]:
    return profile.up, profile.down, profile.mtu


def measure_quickly(calibrator: Calibrator, profiles: Profiles, emit: Emit) -> list[Result]:
    """The results of a measurement that was started before; measure profiles again that are not as asked."""
    emit(StageStarted(STAGE, len(profiles.distinct)))
    found = {key(result): result for result in calibrator.results()}
    for _ in range(ATTEMPTS - 1):
        off = {result["profile"] for result in found.values() if not result["ok"]}
        if not off:
            break
        time.sleep(PAUSE_S)
        calibrator.ask("quick", [p for p in profiles.distinct if p.name in off])
        again = {key(result): result for result in calibrator.results()}
        found |= {k: result for k, result in again.items() if not found[k]["ok"]}
    emit(StageEnded(STAGE))
    return profiles.spread(list(found.values()))


def measure_fully(
    calibrator: Calibrator, profiles: Profiles, emit: Emit, seconds: float
) -> list[Result]:
    """Measure thoroughly, with so many seconds of TCP in each direction."""
    begun = False

    def on_progress(message: dict[str, Any]) -> None:
        nonlocal begun
        if not begun:
            emit(StageStarted(STAGE, message["of"]))
            begun = True
        emit(StageAdvanced(STAGE, detail=message["what"]))

    effort = {"seconds": seconds, "skip_s": min(SKIP_S, seconds / 5)}
    calibrator.ask("full", profiles.distinct, effort=effort)
    found = calibrator.results(on_progress, PATIENCE_S + seconds)
    emit(StageEnded(STAGE))
    return profiles.spread(found)


def key(result: Result) -> tuple[str, str]:
    """Profile and direction of a result."""
    return result["profile"], result["direction"]


def _warn_of(results: Sequence[Result], emit: Emit) -> None:
    """One warning for each direction of a profile that is not as asked."""
    for result in results:
        if not result["ok"]:
            why = "; ".join(result["reasons"])
            emit(
                Warned(
                    f"links of profile {result['profile']}, {result['direction']}, deviate from the profile: {why}"
                )
            )


def _report_not_calibrated(
    run: RunPlace, error: CalibrationFailed, emit: Emit, *, asked: bool
) -> None:
    """A warning, unless the user asked for the calibration."""
    text = f"the links could not be calibrated: {error.message}"
    extend_manifest(run, warnings=[text])
    full = f"{text}; {error.hint}" if error.hint else text
    emit(Incomplete(full) if asked else Warned(full))
