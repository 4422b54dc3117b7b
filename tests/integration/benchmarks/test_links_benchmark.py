"""The benchmark of links runs, and prints its measurements."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.netns
@pytest.mark.root
def test_the_benchmark_of_links_measures_ours_and_the_peer(repository: Path) -> None:
    options = ["--seconds", "1", "--emulator", "tbf", "--profiles", "3g-384k", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.links", *options],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["limits"] == {"tbf_rate_off": 0.03, "tbf_delay_off": 1.0}
    assert document["ratios"].keys() == document["limits"].keys()
    links = document["details"]["links"]
    assert links.keys() == {"tbf", "tc tbf by hand"}
    for found in links.values():
        assert {one["profile"] for one in found} == {"3g-384k", "10kB/s"}
        for one in found:
            assert one["achieved"]["rate_bps"] == pytest.approx(one["asked"]["rate_bps"], rel=0.5)
