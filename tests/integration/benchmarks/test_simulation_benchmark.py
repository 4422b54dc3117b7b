"""The benchmark of the simulation runs, and prints its measurements."""

import json
import subprocess
import sys
from pathlib import Path


def test_the_benchmark_measures_the_loop_messages_and_labs(repository: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.simulation", "--json", "--events", "1000"),
            "topologies/minimal.yaml",
        ],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ratios"].keys() == document["limits"].keys() == {"simple_event", "scenario"}
    assert document["seconds"].keys() == {"minimal"}
    assert document["details"]["messages a second between 100000 nodes"] > 0
    assert document["details"]["minimal: nodes, events"][0] == 3
