"""Are the links as asked? Beside each `up` every profile in use is measured; the answer stands in the manifest."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from testbed.events import Emit, StageAdvanced, StageEnded, StageStarted, Warned
from testbed.lab.calibrator import PATIENCE_S, CalibrationFailed, Calibrator, Result
from testbed.places import LabPlace, RunPlace
from testbed.records import extend_manifest, update_manifest
from testbed.topology.model import Emulator, Profile, Shape, Topology

STAGE = "calibrating links"
SKIP_S = 1.0  # at the beginning of each stream: TCP has to find the rate first
PAUSE_S = 0.3  # before another look
LOOKS = 3  # quick ones: a machine that was busy for a moment gets another chance


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

    What is not as asked is warned of. That nothing could be measured is a warning, too: the lab is up all the same.
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
                results = look_quickly(calibrator, profiles, emit)
            else:
                results = look_fully(calibrator, profiles, emit, thorough_s)
        except CalibrationFailed as error:
            results = []
            _say_that_nothing_is_known(run, error, emit)
    update_manifest(run, calibration=results)
    _warn_of(results, emit)


class Profiles:
    """The profiles that a topology's nodes use; those that are the same but for their names are measured once."""

    def __init__(self, topology: Topology) -> None:
        used = {node.profile for node in topology.nodes}
        self._all = [profile for profile in topology.profiles if profile.name in used]
        self._names: dict[tuple[Shape, Shape, int], list[str]] = {}
        for profile in self._all:
            self._names.setdefault(_likeness(profile), []).append(profile.name)
        self.distinct = [p for p in self._all if self._names[_likeness(p)][0] == p.name]

    def spread(self, results: Sequence[Result]) -> list[Result]:
        """A result for each name."""
        alike = {names[0]: names for names in self._names.values()}
        return [
            {**result, "profile": name} for result in results for name in alike[result["profile"]]
        ]


def _likeness(profile: Profile) -> tuple[Shape, Shape, int]:
    return profile.up, profile.down, profile.mtu


def look_quickly(calibrator: Calibrator, profiles: Profiles, emit: Emit) -> list[Result]:
    """The answer to a question that was asked before; what is not as asked is looked at again."""
    emit(StageStarted(STAGE, len(profiles.distinct)))
    found = {key(result): result for result in calibrator.results()}
    for _ in range(LOOKS - 1):
        off = {result["profile"] for result in found.values() if not result["ok"]}
        if not off:
            break
        time.sleep(PAUSE_S)
        calibrator.ask("quick", [p for p in profiles.distinct if p.name in off])
        again = {key(result): result for result in calibrator.results()}
        found |= {k: result for k, result in again.items() if not found[k]["ok"]}
    emit(StageEnded(STAGE))
    return profiles.spread(list(found.values()))


def look_fully(
    calibrator: Calibrator, profiles: Profiles, emit: Emit, seconds: float
) -> list[Result]:
    """Seconds of TCP in each direction, and the rest."""
    begun = False

    def told(words: dict[str, Any]) -> None:
        nonlocal begun
        if not begun:
            emit(StageStarted(STAGE, words["of"]))
            begun = True
        emit(StageAdvanced(STAGE, detail=words["what"]))

    effort = {"seconds": seconds, "skip_s": min(SKIP_S, seconds / 5)}
    calibrator.ask("full", profiles.distinct, effort=effort)
    found = calibrator.results(told, PATIENCE_S + seconds)
    emit(StageEnded(STAGE))
    return profiles.spread(found)


def key(result: Result) -> tuple[str, str]:
    """What a result is about."""
    return result["profile"], result["direction"]


def _warn_of(results: Sequence[Result], emit: Emit) -> None:
    """One warning for each direction of a profile that is not as asked."""
    for result in results:
        if not result["ok"]:
            why = "; ".join(result["reasons"])
            emit(
                Warned(
                    f"links of profile {result['profile']}, {result['direction']}, are not as asked: {why}"
                )
            )


def _say_that_nothing_is_known(run: RunPlace, error: CalibrationFailed, emit: Emit) -> None:
    text = f"the links could not be calibrated: {error.message}"
    extend_manifest(run, warnings=[text])
    emit(Warned(f"{text}; {error.hint}" if error.hint else text))
