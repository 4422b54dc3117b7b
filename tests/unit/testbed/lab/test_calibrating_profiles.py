"""Which profiles are measured, how often, and the reported results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.jsonfiles import write_json
from testbed.lab.start import calibration
from testbed.lab.start.calibration import (
    ATTEMPTS,
    CalibrationFailed,
    Calibrator,
    Profiles,
    calibrated,
    measure_quickly,
)
from testbed.places import LabPlace, RunPlace
from testbed.progress import Event, Incomplete, Warned
from testbed.topology.model import Emulator, Node, NodeKind, Profile, Shape, Topology

SLOW = Shape(rate_bps=1e5)


def topology(*profiles: Profile, used: Sequence[str]) -> Topology:
    nodes = [Node(f"n{i}", i, NodeKind.SENSOR, name) for i, name in enumerate(used, 1)]
    return Topology("t", 1, profiles, tuple(nodes))


def result(profile: str, ok: bool, look: int = 0) -> dict[str, Any]:
    reasons = [] if ok else [f"look {look}"]
    return {"profile": profile, "direction": "up", "ok": ok, "reasons": reasons}


class Scripted(Calibrator):
    """A calibrator with prepared results."""

    def __init__(self, *looks: list[dict[str, Any]]) -> None:
        self._looks = list(looks)
        self.asked: list[list[str]] = []

    def ask(self, do: str, profiles: Sequence[Profile], **fields: Any) -> None:
        self.asked.append([profile.name for profile in profiles])

    def results(self, recorded: Any = None, patience_s: float = 0.0) -> list[dict[str, Any]]:
        return self._looks.pop(0)


def events() -> tuple[list[Event], Any]:
    seen: list[Event] = []
    return seen, seen.append


def test_only_profiles_in_use_are_measured() -> None:
    found = Profiles(topology(Profile("a", SLOW), Profile("b"), used=["a", "a"]))
    assert [profile.name for profile in found.distinct] == ["a"]


def test_profiles_that_differ_in_name_only_are_measured_once_and_reported_for_each() -> None:
    twins = Profiles(topology(Profile("a", SLOW), Profile("b", SLOW), used=["b", "a"]))
    assert [profile.name for profile in twins.distinct] == ["a"]
    recorded = twins.spread([result("a", True)])
    assert [one["profile"] for one in recorded] == ["a", "b"]


def test_a_good_first_look_is_enough() -> None:
    calibrator = Scripted([result("a", True)])
    seen, emit = events()
    measure_quickly(calibrator, Profiles(topology(Profile("a", SLOW), used=["a"])), emit)
    assert calibrator.asked == []
    assert not any(isinstance(event, Warned) for event in seen)


def test_a_bad_look_is_repeated_for_what_was_bad_only() -> None:
    profiles = Profiles(topology(Profile("a", SLOW), Profile("b"), used=["a", "b"]))
    calibrator = Scripted([result("a", False, 1), result("b", True)], [result("a", True)])
    found = measure_quickly(calibrator, profiles, events()[1])
    assert calibrator.asked == [["a"]]
    assert [one["ok"] for one in found] == [True, True]


def test_a_profile_that_stays_bad_is_reported_with_its_last_result() -> None:
    profiles = Profiles(topology(Profile("a", SLOW), used=["a"]))
    calibrator = Scripted(*([result("a", False, look)] for look in range(1, ATTEMPTS + 1)))
    (found,) = measure_quickly(calibrator, profiles, events()[1])
    assert found["reasons"] == [f"look {ATTEMPTS}"]


class Broken(Scripted):
    """A calibrator that measures nothing."""

    def results(self, recorded: Any = None, patience_s: float = 0.0) -> list[dict[str, Any]]:
        raise CalibrationFailed("no socket", "see its log")

    def __enter__(self) -> "Broken":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("thorough_s", "kind"), [(None, Warned), (5.0, Incomplete)])
def test_a_failed_calibration_is_a_warning_unless_the_user_asked_for_it(
    thorough_s: float | None, kind: type[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "Calibrator", lambda *_: Broken())
    run = RunPlace(tmp_path)
    write_json(run.manifest, {"format": 2, "warnings": []})
    seen, emit = events()
    lab = topology(Profile("a", SLOW), used=["a"])
    emulator = Emulator.RELAY
    with calibrated(LabPlace(tmp_path / "t"), run, lab, emulator, emit, thorough_s):
        pass
    assert kind("the links could not be calibrated: no socket; see its log") in seen
