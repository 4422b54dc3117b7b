"""A warning before a run whose disk may become full."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from support.labs.fake_labs import LAB, up
from testbed.lab.simulate import simulate
from testbed.lab.start import disk
from testbed.lab.start.disk import free_bytes, shortage, size_text, warn_of_a_full_disk
from testbed.progress import Event, Warned
from testbed.recording.disk_estimate import MARGIN, DiskEstimate
from testbed.topology import load

MINIMAL = Path(__file__).resolve().parents[4] / "topologies" / "minimal.yaml"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000))


def warnings(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Warned) and "free" in event.text]


def test_there_is_a_warning_only_if_the_estimate_with_its_margin_does_not_fit():
    estimate = DiskEstimate(1_000_000, 0, 0)
    enough = round(1_000_000 * MARGIN)
    assert shortage(estimate, enough, Path("/captures")) == ""
    sentence = shortage(estimate, enough - 1, Path("/captures"))
    assert "the run takes about 1.0 MB, up to 2.0 MB" in sentence
    assert "/captures has 2.0 MB free" in sentence
    assert "runs prune" in sentence
    assert shortage(estimate.times(7), 1, Path("/c"), 7).startswith("7 runs take about 7.0 MB")


def test_a_simulation_warns_and_runs(places, full_disk):
    events: list[Event] = []
    run = simulate(load(MINIMAL), MINIMAL, events.append)
    assert run.manifest.exists()
    assert len(warnings(events)) == 1


def test_up_warns_and_brings_the_lab_up(place, file, full_disk):
    events: list[Event] = []
    record = up(LAB, file, place, events.append)
    assert record.run_place.manifest.exists()
    assert len(warnings(events)) == 1


def test_nothing_is_said_when_there_is_space(places):
    events: list[Event] = []
    warn_of_a_full_disk(load(MINIMAL), events.append)
    assert warnings(events) == []


def test_the_free_space_of_a_folder_to_be_made_is_that_of_the_nearest_one(tmp_path, monkeypatch):
    asked = []

    def usage(folder: Path) -> SimpleNamespace:
        asked.append(folder)
        return SimpleNamespace(free=7)

    monkeypatch.setattr(disk.shutil, "disk_usage", usage)
    assert free_bytes(tmp_path / "captures" / "deeper") == 7
    assert asked == [tmp_path]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (2_500_000, "2.5 MB"), (3e12, "3000.0 GB")],
)
def test_sizes_are_written_in_decimal_units(count, text):
    assert size_text(count) == text
