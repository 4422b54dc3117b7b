"""The benchmark of matching: its peers find the matches of the index, and it reports its measurements."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.matching import (
    CLIENTS,
    DISTRIBUTIONS,
    SIDE,
    alerts,
    draw,
    indexed,
    must_agree,
    numpy_scan,
    plain_scan,
    with_areas,
    with_topic,
)
from nodes.protocol.interests import parse
from testbed.errors import TestbedError


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_index_and_scans_agree(name: str) -> None:
    workload = draw(name, 200, 50, seed=3)
    assert 0 <= workload.low.min() <= workload.high.max() < SIDE
    index = indexed(workload)
    must_agree(index.match, plain_scan(workload), workload.points)
    must_agree(index.match, numpy_scan(workload), workload.points)


def test_a_matcher_that_misses_a_box_is_not_measured() -> None:
    workload = draw("large", 50, 50, seed=3)
    index = indexed(workload)
    for number in range(25):
        index.remove(number)
    with pytest.raises(TestbedError, match="differ at"):
        must_agree(index.match, plain_scan(workload), workload.points)


def test_boxes_lie_around_the_centre_or_anywhere() -> None:
    near, far = (
        draw(name, 2_000, 10, seed=3).low.mean(axis=0) for name in ("exponential", "large")
    )
    assert near == pytest.approx(SIDE / 2, rel=0.1)
    assert (far < 0.45 * SIDE).all()


def test_clients_with_areas_are_those_whose_text_has_one() -> None:
    some, all_clients = with_areas(50, seed=3), with_topic(50)
    messages = alerts(200, seed=3)
    wanting = [some.wanting(message) for message in messages]
    assert 0 < sum(map(len, wanting)) < 200 * 50 / 10
    for message, found in zip(messages, wanting, strict=True):
        texts = {client: some.of(client) for client in (f"siren-{number}" for number in range(50))}
        assert set(found) == {
            client for client, (text,) in texts.items() if parse(text).wants(message)
        }
        assert len(all_clients.wanting(message)) == 50


def test_the_benchmark_says_what_it_measured(repository: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.matching", "--json"),
            *("--subscriptions", "100", "--events", "10"),
        ],
        cwd=repository,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    expected = {f"{what}, {name}" for what in ("event", "of a scan") for name in DISTRIBUTIONS}
    assert document["ratios"].keys() == document["limits"].keys() == {*expected, "clients"}
    assert {f"{count:,} clients with areas: µs a publication" for count in CLIENTS} <= document[
        "details"
    ].keys()
    assert all(document["details"][f"{name}: bytes a subscription"] > 0 for name in DISTRIBUTIONS)
