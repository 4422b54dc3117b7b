"""Links are measured as the lab comes up: on links like its own, beside them; the manifest reports what is wrong.

Margins are wide, because a busy machine disturbs the measurement. Links that must be found wrong are wrong by far.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from testbed.capture.records import read_records
from testbed.keeper.processes import marked
from testbed.links.emulator import choose
from testbed.links.probe import probe_machine
from testbed.places import LabPlace, marks
from testbed.topology.model import Emulator, Profile, Shape

pytestmark = pytest.mark.netns

LAB = """
links:
  emulator: relay
  profiles:
    mobile: {both: {SETTINGS}}
defaults: {link: mobile}
nodes:
  broker: {kind: broker}
  sensor: {kind: sensor}
  siren: {kind: subscriber, topics: [alerts]}
scenario:
  duration: 1s
  events:
    - {at: 0s, publish: {from: sensor, topic: alerts, size: 100B}}
"""
MVNO = "rate: 128kbit/s, delay: 60ms, jitter: 15ms, queue: 32kB"


@pytest.fixture
def lab_file(places: Path) -> Any:
    """lab_file(settings): a small lab whose links all have these settings."""

    def write(settings: str) -> Path:
        path = places / "calib.yaml"
        path.write_text(LAB.replace("SETTINGS", settings))
        return path

    return write


def manifest_of(places: Path) -> dict[str, Any]:
    (path,) = (places / "c").glob("calib-*/run.json")
    manifest: dict[str, Any] = json.loads(path.read_text())
    return manifest


def calibration_of(places: Path) -> dict[str, dict[str, Any]]:
    """The calibration by direction."""
    return {one["direction"]: one for one in manifest_of(places)["calibration"]}


def test_the_manifest_records_requested_and_achieved_link_settings(
    testbed: Any, places: Path, lab_file: Any, watch: Any
) -> None:
    up = testbed("up", lab_file(MVNO), "--backend", "netns")
    assert up.returncode == 0, up.stderr
    found = calibration_of(places)
    assert found.keys() == {"up", "down"}
    for one in found.values():
        assert (one["profile"], one["method"], one["ok"]) == ("mobile", "quick", True)
        assert one["asked"] == {"rate_bps": 128_000, "delay_s": 0.06, "loss": 0.0}
        assert one["achieved"]["rate_bps"] == pytest.approx(128_000, rel=0.3)
        assert 0.04 < one["achieved"]["delay_s"] < 0.2
        assert one["achieved"]["loss"] is None
    place = LabPlace(places / "s" / "calib")
    roles = [process.role for process in marked(place)]
    assert roles.count("relay") == 1  # the scratch links and their relay are gone
    assert "calibration" not in roles
    assert testbed("down", "calib").returncode == 0
    assert scratch_packets(places) == 0
    assert watch.leftovers() == []


def scratch_packets(places: Path) -> int:
    """Packets of the measurement in the lab's captures; their addresses begin with 198.18."""
    files = list((places / "c").glob("calib-*/pcap/*.pcap"))
    assert len(files) == 3
    frames = [frame for path in files for _, _, frame in read_records(path)]
    assert frames
    return sum(bytes([198, 18]) in (frame[26:28], frame[30:32]) for frame in frames)


def test_a_rate_that_cannot_be_reached_is_a_warning_and_exit_code_three_if_strict(
    testbed: Any, places: Path, lab_file: Any
) -> None:
    file = lab_file("rate: 40Gbit/s, queue: 10MB")
    up = testbed("up", file, "--backend", "netns")
    assert up.returncode == 0, up.stderr
    assert (
        "links of profile mobile, up, deviate from the profile: a rate of 40Gbit/s was configured"
        in (" ".join(up.stderr.split()))
    )
    for one in calibration_of(places).values():
        assert not one["ok"]
        assert one["reasons"][-1].startswith("a rate of 40Gbit/s was configured, ")
        assert one["achieved"]["rate_bps"] < 20e9
    again = testbed("up", file, "--calibrate", "--calibrate-seconds", "1", "--strict")
    assert again.returncode == 3, again.stderr
    assert "warning: links of profile mobile, up, deviate from the profile" in again.stderr


def test_the_option_calibrate_measures_all_links_thoroughly(
    testbed: Any, testbed_json: Any, places: Path, lab_file: Any
) -> None:
    settings = "rate: 1Mbit/s, delay: 20ms, jitter: 5ms, loss: 1%"
    file = lab_file(settings)
    up = testbed_json("up", file, "--backend", "netns")
    assert up["calibration"] == manifest_of(places)["calibration"]
    again = testbed("up", file, "--calibrate", "--calibrate-seconds", "2")
    assert again.returncode == 0, again.stderr
    assert "links: asked and achieved" in again.stdout
    for one in calibration_of(places).values():
        assert one["method"] == "full"
        assert one["achieved"]["rate_bps"] == pytest.approx(1e6, rel=0.4)
        assert 0.014 < one["achieved"]["delay_s"] < 0.2
        assert 0 <= one["achieved"]["loss"] < 0.1
        assert one["lone_1kB"]["asked_s"] == pytest.approx(0.028)
        assert one["lone_1kB"]["achieved_s"] > 0.022


def test_links_that_are_not_measured_anew_keep_their_calibration(
    testbed: Any, places: Path, lab_file: Any
) -> None:
    file = lab_file(MVNO)
    assert testbed("up", file, "--backend", "netns").returncode == 0
    before = manifest_of(places)["calibration"]
    assert testbed("up", file).returncode == 0
    assert manifest_of(places)["calibration"] == before


WRONG = """
from dataclasses import replace
from testbed.keeper import calibration

asked = calibration.ScratchLinks.shape
def wrong(self, names, profiles):
    half = [replace(p, up=replace(p.up, rate_bps=p.up.rate_bps / 2, delay_s=0.3)) for p in profiles]
    asked(self, names, half)
calibration.ScratchLinks.shape = wrong
calibration.main()
"""


def measure(places: Path, emulator: str, profile: Profile, *program: str) -> list[dict[str, Any]]:
    """Run the measuring process on one profile; return its result."""
    place = LabPlace(places / "s" / "alone")
    place.folder.mkdir(parents=True)
    request = {"do": "quick", "emulator": emulator, "profiles": [asdict(profile)]}
    unprivileged = [] if os.geteuid() == 0 else ["--unprivileged"]
    done = subprocess.run(
        [sys.executable, *program, str(place.folder), "run", str(os.getpid()), *unprivileged],
        input=json.dumps(request) + "\n",
        env={**os.environ, **marks(place, "run", "calibration")},
        text=True,
        capture_output=True,
        timeout=240,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["ok"], answer
    results: list[dict[str, Any]] = answer["results"]
    return results


def test_calibration_finds_a_link_with_wrong_settings(places: Path) -> None:
    shape = Shape(rate_bps=500_000, delay_s=0.05)
    emulator, _ = choose(Emulator.AUTO, [shape], probe_machine().capabilities)
    up, down = measure(places, emulator, Profile("mobile", shape, shape), "-c", WRONG)
    assert not up["ok"]
    about_delay, about_rate = up["reasons"]
    assert about_delay.startswith("a delay of 50ms was configured, ")
    assert about_rate.startswith("a rate of 500kbit/s was configured, ")
    assert up["achieved"]["delay_s"] > 0.29
    assert up["achieved"]["rate_bps"] < 400_000
    assert down["achieved"]["rate_bps"] > 300_000
    assert 0.045 < down["achieved"]["delay_s"] < 0.2


def test_the_credit_of_tbf_does_not_make_its_rate_look_wrong(places: Path) -> None:
    shape = Shape(rate_bps=80_000)
    module = ("-m", "testbed.keeper.calibration")
    for one in measure(places, "tbf", Profile("mobile", shape, shape), *module):
        assert one["achieved"]["rate_bps"] == pytest.approx(80_000, rel=0.2)
        assert one["achieved"]["delay_s"] < 0.1


def test_nothing_is_left_when_the_command_is_killed_while_it_measures(
    testbed: Any, places: Path, lab_file: Any, wait_until: Any, watch: Any
) -> None:
    file = lab_file(MVNO)
    place = LabPlace(places / "s" / "calib")
    command = [sys.executable, "-m", "testbed", "up", str(file), "--backend", "netns"]
    with subprocess.Popen(
        [*command, "--calibrate"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as up:
        wait_until(lambda: relays(place) == 2, 60)  # the lab's own, and that of the scratch links
        watch.processes()
        up.send_signal(signal.SIGKILL)
    wait_until(lambda: (relays(place), measuring(place)) == (1, 0), 60)
    assert testbed("down", "calib").returncode == 0
    assert watch.leftovers() == []


def relays(place: LabPlace) -> int:
    return sum(process.role == "relay" for process in marked(place))


def measuring(place: LabPlace) -> int:
    return sum(process.role == "calibration" for process in marked(place))
