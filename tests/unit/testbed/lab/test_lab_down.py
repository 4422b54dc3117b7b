"""`down` works on whatever is left of a lab, on any backend, and completes the run's record."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from support.labs.fake_labs import LAB, up
from testbed.errors import NoSuchLab, TestbedError
from testbed.lab.down import _clear_boards, _save_boards, bring_all_down, bring_down
from testbed.lab.status import lab_status
from testbed.places import LabPlace
from testbed.progress import Incomplete, Note, Warned, ignore
from testbed.records import find_lab, lab_names, locked, read_manifest


def test_down_completes_the_manifest_and_forgets_the_lab(place, file):
    record = up(LAB, file, place)
    bring_down("valley", ignore, place)
    manifest = read_manifest(record.run_place)
    assert manifest["status"] == "down"
    assert set(manifest["capture"]) == {"broker", "sensor", "siren"}
    assert lab_names() == []
    assert not LabPlace.of("valley").folder.exists()


def test_of_many_labs_one_that_fails_does_not_stop_the_others(place, file):
    up(LAB, file, place)
    up(replace(LAB, name="hill"), file, place)
    with locked("hill"):
        hill, valley = bring_all_down(lab_names(), ignore, place)
    assert "another command is changing" in hill.error
    assert (valley.lab, valley.error) == ("valley", "")
    assert lab_names() == ["hill"]


def test_down_of_a_dead_lab_works_and_says_so(place, file):
    record = up(LAB, file, place)
    place.backend.destroy()
    seen = []
    bring_down("valley", seen.append, place)
    assert read_manifest(record.run_place)["status"] == "died"
    assert seen == [Note("the lab had died before; its captures end where it died")]


def test_down_says_what_went_wrong_with_the_capture(place, file, monkeypatch):
    record = up(LAB, file, place)
    backend = place.backend
    backend.captured = lambda: ({}, "the capture process had died")
    seen = []
    bring_down("valley", seen.append, place)
    assert Incomplete("the measurement is not complete: the capture process had died") in seen
    assert "had died" in read_manifest(record.run_place)["warnings"][0]


def test_down_works_with_a_damaged_manifest(place, file):
    record = up(LAB, file, place)
    record.run_place.manifest.write_text("{ not json")
    seen = []
    bring_down("valley", seen.append, place)
    assert lab_names() == []
    (missing,) = seen
    assert isinstance(missing, Incomplete)
    assert "the lab did not end in order" in missing.text


def test_packets_that_the_captures_lost_are_a_warning(place, file):
    up(LAB, file, place)
    place.backend.captured = lambda: ({"siren": {"packets": 9, "dropped": 2}}, "")
    seen = []
    bring_down("valley", seen.append, place)
    assert Warned("the captures lost 2 packets; the report says where") in seen
    assert not any(isinstance(event, Incomplete) for event in seen)


def test_nodes_that_do_not_end_leave_the_run_incomplete(place, file, monkeypatch):
    up(LAB, file, place)

    def fail(*_):
        raise TestbedError("siren still runs")

    monkeypatch.setattr(place.backend, "stop", fail)
    seen = []
    bring_down("valley", seen.append, place)
    assert Incomplete("the nodes did not end in order: siren still runs") in seen
    assert lab_names() == []


def test_boards_that_are_not_cleared_or_collected_leave_the_lab_incomplete(place, file):
    record = up(LAB, file, place)
    seen = []
    _clear_boards(LabPlace.of("valley"), record, seen.append)  # no board was ever deployed
    _save_boards(SimpleNamespace(captured=lambda: ({}, "no answer from b1")), record, seen.append)
    not_cleared, not_collected = seen
    assert isinstance(not_cleared, Incomplete)
    assert "the boards were not cleared" in not_cleared.text
    assert not_collected == Incomplete("the measurement is not complete: no answer from b1")


@pytest.mark.parametrize("content", ["{}", "[]", "{ not json", '{"name": "valley", "extra": 1}'])
def test_down_and_status_work_with_a_damaged_record(place, file, content):
    up(LAB, file, place)
    LabPlace.of("valley").record.write_text(content)
    assert lab_status("valley").state == "damaged"
    with pytest.raises(NoSuchLab, match="is damaged"):
        find_lab("valley")
    bring_down("valley", ignore, place)
    assert lab_names() == []


def test_status_reports_a_lab_whose_run_folder_was_deleted(place, file):
    record = up(LAB, file, place)
    shutil.rmtree(record.run_folder)
    assert lab_status("valley").state == "damaged"


def test_down_of_a_lab_that_had_only_begun_leaves_no_run_folder(place, file, places):
    record = up(LAB, file, place)
    record.run_place.manifest.unlink()
    bring_down("valley", ignore, place)
    assert list((places / "c").iterdir()) == []


def test_down_takes_the_lock_of_a_killed_play_away(place, file, places):
    up(LAB, file, place)
    (places / "s" / ".valley.playing").touch()
    bring_down("valley", ignore, place)
    assert list((places / "s").iterdir()) == []


def test_down_of_nothing_says_that_there_is_nothing(places):
    seen = []
    assert bring_down("valley", seen.append) is None
    assert "nothing of a lab named 'valley'" in seen[0].text
