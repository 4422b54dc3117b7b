"""`testbed why` of simulated runs: a big message before an alert, and a link that was cut."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from analysis.report.report import write_report
from testbed.cli.app import app
from testbed.lab.simulate import simulate
from testbed.progress import ignore
from testbed.topology import load

pytestmark = pytest.mark.spark

SAMPLE = Path(__file__).parents[3] / "captures" / "sample"

NODES = """
name: valley
seed: 3
nodes:
  broker: {kind: broker, link: lan}
  camera: {kind: sensor, link: lan}
  gauge: {kind: sensor, link: lan}
  siren: {kind: subscriber, link: mvno-128k, topics: [alerts, pictures]}
delivery: {method: METHOD}
scenario:
  duration: 10s
  settle: 20s
  events:
    - {at: 1s, publish: {from: gauge, topic: alerts, priority: 5, size: 200B, period: 2s, count: 4}}
"""
PICTURE = "    - {at: 2900ms, publish: {from: camera, topic: pictures, priority: 1, size: 60kB}}\n"
CUT = "    - {at: 2500ms, for: 2s, cut: {nodes: siren}}\n"


@pytest.fixture
def slowest(
    places: Path, analyzed: Callable[[Path], Any]
) -> Callable[[str, str], list[dict[str, Any]]]:
    """slowest(event, method): the slowest alerts of a run with this event, as `testbed why --json` explains them."""

    def explain(event: str, method: str = "fifo") -> list[dict[str, Any]]:
        file = places / "valley.yaml"
        file.write_text(NODES.replace("METHOD", method) + event)
        run = simulate(load(file), file, ignore)
        analyzed(run.folder)
        done = CliRunner().invoke(app, ["why", run.run, "--level", "5", "--json"])
        assert done.exit_code == 0, done.output
        found: list[dict[str, Any]] = json.loads(done.stdout)["deliveries"]
        return found

    return explain


def test_with_fifo_the_picture_before_the_alert_is_named(slowest):
    first, second, *others = slowest(PICTURE)
    for alert in (first, second):
        cause = alert["cause"]
        assert (cause["kind"], cause["link"], cause["direction"]) == (
            "other messages",
            "siren",
            "down",
        )
        assert {(one["level"], one["topic"]) for one in cause["others"]} == {(1, "pictures")}
        assert cause["others"][0]["messages"] == 1
        assert cause["seconds"] == pytest.approx(alert["delay_s"], rel=0.1)
    assert first["cause"]["others"][0]["bytes"] > second["cause"]["others"][0]["bytes"]
    assert {one["cause"]["kind"] for one in others} == {"propagation"}


def test_with_preemptive_no_alert_waits_for_the_picture(slowest):
    fifo, preemptive = (slowest(PICTURE, method)[0] for method in ("fifo", "preemptive"))
    assert preemptive["delay_s"] < fifo["delay_s"] / 2


def test_the_cut_of_a_link_is_named(slowest):
    first, *others = slowest(CUT)
    assert first["cause"]["kind"] == "disturbance"
    assert first["cause"]["disturbance"]["kind"] == "cut"
    assert first["cause"]["disturbance"]["targets"] == ["siren"]
    assert "link cut (siren, 2.5 s to 4.5 s)" in first["why"]
    after = [one for one in others if one["delay_s"] > 0.5]  # TCP was still waiting
    assert all("near it: link cut (siren, 2.5 s to 4.5 s)" in one["why"] for one in after)


def test_the_sample_is_explained_in_the_terminal_and_in_the_report(places, analyzed):
    folder = places / "sample"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("metrics", "*.html", "summary*"))
    analyzed(folder)
    done = CliRunner().invoke(app, ["why", str(folder), "--slowest", "1", "--json"])
    assert done.exit_code == 0, done.output
    (slowest,) = json.loads(done.stdout)["deliveries"]
    assert slowest["cause"]["kind"] == "propagation"
    report = write_report(folder).read_text().replace("\u00a0", " ")
    section = report[report.index('id="why"') :]
    assert slowest["why"] in section
    assert section.index(slowest["id"]) < section.index("</table>")
