"""The estimate of a run's disk and a real run are within the factor that docs/howto/runs.md states."""

import pytest

from testbed.recording.disk_estimate import MARGIN

pytestmark = pytest.mark.usefixtures("places")


@pytest.mark.parametrize("file", ["topologies/minimal.yaml", "topologies/valley-alerts.yaml"])
def test_a_run_takes_what_was_estimated(testbed_json, file):
    [estimate] = testbed_json("validate", file)["disk"]
    run = testbed_json("run", file, "--backend", "netns")["run"]
    sizes = testbed_json("runs", "show", run)["sizes_bytes"]
    assert sizes["captures"] / MARGIN < estimate["captures_bytes"] < sizes["captures"] * MARGIN
    total = sum(sizes.values())
    assert total / MARGIN < estimate["total_bytes"] < total * MARGIN


def test_a_run_is_up_until_its_lab_is_down(testbed, testbed_json):
    testbed_json("up", "topologies/minimal.yaml", "--backend", "netns")
    [run] = testbed_json("runs", "list")["runs"]
    assert run["status"] == "up"
    refused = testbed("runs", "rm", run["name"], "--yes", "--force")
    assert refused.returncode == 2
    assert "testbed down minimal" in refused.stderr
    testbed_json("down", "minimal")
    [run] = testbed_json("runs", "list")["runs"]
    assert run["status"] == "not played"
    assert testbed_json("runs", "rm", run["name"], "--yes")["removed"] == [run["name"]]
    assert testbed_json("runs", "list")["runs"] == []
