"""`testbed watch` beside a running lab: its numbers grow with the run, end with it, and equal those of the captures."""

import json
import os
import signal
import subprocess
import sys
from statistics import median

import pytest

from analysis.live.run import WatchedRun

pytestmark = pytest.mark.netns

COUNT = 20
FILE = f"""
name: watched
nodes:
  broker: {{kind: broker}}
  sensor: {{kind: sensor, link: 3g-384k}}
  siren: {{kind: subscriber, link: mvno-128k, topics: [alerts]}}
scenario:
  duration: 5s
  settle: 30s
  events:
    - at: 0s
      publish: {{from: sensor, topic: alerts, priority: 5, size: 100B, period: 200ms, count: {COUNT}}}
"""


@pytest.fixture
def started(repository):
    """started("watch", ...): start a command that keeps running; it ends with the test."""
    processes = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "testbed", *arguments],
                cwd=repository,
                env={**os.environ, "COLUMNS": "160"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_delay_and_loss_are_seen_while_the_run_goes_on(testbed, started, places, tmp_path):
    file = tmp_path / "watched.yaml"
    file.write_text(FILE)
    assert testbed("up", file, "--backend", "netns").returncode == 0
    watching = started("watch", "watched", "--json", "--every", "0.3")
    interrupted = started("watch")
    assert json.loads(watching.stdout.readline())["running"]
    played = testbed("play", "watched")
    assert played.returncode == 0, played.stderr
    interrupted.send_signal(signal.SIGINT)
    assert testbed("down", "watched").returncode == 0

    out, err = watching.communicate(timeout=120)
    assert watching.returncode == 0
    assert "has ended" in err
    looks = [json.loads(line) for line in out.splitlines()]
    assert [look["running"] for look in looks] == [True] * (len(looks) - 1) + [False]
    seen = [look["levels"]["5"]["delivered"] for look in looks if look["levels"]]
    assert seen == sorted(seen)
    assert len(set(seen)) > 4
    last = looks[-1]["levels"]["5"]
    assert (last["published"], last["delivered"], last["overdue"]) == (COUNT, COUNT, 0)

    (folder,) = (places / "c").iterdir()
    whole = WatchedRun(folder)
    whole.look(final=True)
    (level,) = whole.levels(0, 0.0)
    assert (level.p50, level.max) == (last["p50"], last["max"])
    lines = map(json.loads, (folder / "logs" / "siren.jsonl").read_text().splitlines())
    logged = [line["t"] - line["published_ns"] for line in lines if line["event"] == "receive"]
    assert 0.05 < level.max <= max(logged) / 1e9

    out, err = interrupted.communicate(timeout=120)
    assert interrupted.returncode == 130
    assert "5 emergency" in out
    assert "the run continues" in err


def test_a_run_that_is_over_is_shown_once(testbed, testbed_json, repository):
    sample = repository / "captures" / "sample"
    done = testbed("watch", sample)
    assert done.returncode == 0
    assert "5 of 5" in done.stdout
    received = map(json.loads, (sample / "logs" / "siren.jsonl").read_text().splitlines())
    delays = [
        (one["t"] - one["published_ns"]) / 1e9 for one in received if one.get("priority") == 5
    ]
    (look,) = testbed("watch", sample, "--json", "--once").stdout.splitlines()
    level = json.loads(look)["levels"]["5"]
    assert level["p50"] == pytest.approx(median(delays), abs=0.02), (
        "a log entry is a little later than the capture"
    )
    assert level["max"] == pytest.approx(max(delays), abs=0.02)
    done = testbed("watch", "nothing")
    assert done.returncode == 2
    assert "no run 'nothing'" in done.stderr
