"""The error for a folder that cannot be measured."""

import json

import pytest

from analysis.errors import AnalysisError
from analysis.inputs.run_folder import read_run
from support.runs.star_runs import StarRun


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has no run.json"),
        ("{", "not JSON"),
        (json.dumps({"format": 1}), "format 1; this version reads 2"),
        (json.dumps({"format": 7}), "format 7; this version reads 2"),
    ],
)
def test_a_folder_that_is_no_run_is_refused_with_a_next_step(tmp_path, text, message):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(AnalysisError, match=message) as error:
        read_run(tmp_path)
    assert error.value.hint


def test_nodes_have_their_address_mac_and_topics(tmp_path):
    StarRun(sensors=1, subscribers=1).write(tmp_path / "run")
    run = read_run(tmp_path / "run")
    broker, sensor, town = run.nodes
    assert (broker.kind, sensor.kind, town.kind) == ("broker", "sensor", "subscriber")
    assert sensor.address == 0x0A4D0002
    assert sensor.mac == 0x027462000002
    assert town.topics == ("landslide/alert", "rain")
    assert run.captured() == run.nodes


def test_a_run_whose_start_was_killed_before_its_links_were_made_can_be_read(tmp_path):
    StarRun(sensors=1, subscribers=1).write(tmp_path / "run")
    manifest = tmp_path / "run" / "run.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "emulator": None}))
    assert read_run(tmp_path / "run").emulator == "unknown"
