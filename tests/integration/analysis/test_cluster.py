"""The same jobs on a cluster of two workers that have no package of ours: the results equal those of this machine."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from analysis.packets import read_packets
from analysis.pipeline import analyze
from analysis.spark.shipping import write_job
from benchmarks.support.spark_cluster import (
    FOR_A_DRIVER,
    PATIENCE_S,
    SPARK_HOME,
    bare_python,
    own_cluster,
    spark_environment,
)
from support.captures.capture_files import START_NS, Captured, pcap
from support.runs.star_runs import Host, Publication, StarRun, packet

pytestmark = pytest.mark.spark

ONE, TWO = Host("one", 1, "10.77.0.1"), Host("two", 2, "10.77.0.2")
SORTED = [("path", "ascending"), ("offset", "ascending")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master with two workers; their Python, and that of a program that submits work to them."""
    folder = tmp_path_factory.mktemp("cluster")
    with own_cluster(folder, workers=2, cores=1) as master:
        yield master, bare_python(folder), bare_python(folder, FOR_A_DRIVER)


@pytest.fixture
def reach(cluster, no_spark, monkeypatch) -> str:
    """The address of the master, for our commands."""
    master, python, _ = cluster
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    return master


@pytest.fixture
def submit(cluster, tmp_path):
    """submit("packets", ...): the JSON document of a job run by spark-submit, from a Python without testbed."""
    master, python, driver = cluster
    code, program = write_job(tmp_path / "job")

    def command(*arguments: object, code_expected: int = 0) -> Any:
        done = subprocess.run(
            [
                SPARK_HOME / "bin" / "spark-submit",
                *("--master", master, "--py-files", code, program, *map(str, arguments)),
            ],
            cwd=tmp_path,
            env={
                **spark_environment(),
                "PYSPARK_PYTHON": str(python),
                "PYSPARK_DRIVER_PYTHON": str(driver),
            },
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE_S,
            check=False,
        )
        assert done.returncode == code_expected, done.stderr[-3000:]
        return json.loads(done.stdout)

    return command


@pytest.fixture
def captures(tmp_path) -> Path:
    folder = tmp_path / "captures"
    folder.mkdir()
    for number in range(4):
        made = [
            Captured(packet(ONE, TWO, (number, 80), n, 7, 24, b"x" * (n % 90)), START_NS + n)
            for n in range(500 * (number + 1))
        ]
        (folder / f"{number}.pcap").write_bytes(pcap(made)[: -1 if number == 2 else None])
    return folder


def ignore(*_: object) -> None:
    pass


def rows(target: Path) -> list[dict[str, Any]]:
    return pq.read_table(target).sort_by(SORTED).to_pylist()


def test_packets_are_those_of_one_machine(reach, submit, captures, tmp_path):
    here = read_packets([str(captures)], tmp_path / "here.parquet", ignore, "local[2]")
    there = read_packets([str(captures)], tmp_path / "there.parquet", ignore, reach)
    submitted = submit("packets", captures, "--to", tmp_path / "submitted.parquet", code_expected=3)
    for document in (there, submitted):
        assert {**document, "parquet": here["parquet"]} == here
        assert rows(Path(document["parquet"])) == rows(tmp_path / "here.parquet")
    assert here["packets"] == 4999
    refused = submit("packets", tmp_path / "nothing", code_expected=1)
    assert "there is no capture at" in refused["error"]["message"]


def test_a_runs_numbers_are_those_of_one_machine(reach, submit, tmp_path):
    run = StarRun(publications=[Publication(n % 2, 20 * n, 1 + n % 5) for n in range(60)])
    run.write(tmp_path / "run")
    folder = tmp_path / "run"
    summaries = [analyze(folder, master="local[2]")]
    deliveries = [_deliveries(folder)]
    summaries.append(analyze(folder, master=reach))
    deliveries.append(_deliveries(folder))
    submitted = submit("analyze", folder)
    assert submitted.pop("warnings") == summaries[0]["fidelity"]["reasons"]
    assert submitted.pop("incomplete") == []
    summaries.append(submitted)
    deliveries.append(_deliveries(folder))
    assert summaries[0]["messages"]["delivered"] == 120
    assert summaries[0] == summaries[1] == summaries[2]
    assert deliveries[0] == deliveries[1] == deliveries[2]


def _deliveries(folder: Path) -> list[dict[str, Any]]:
    table = pq.read_table(folder / "metrics" / "deliveries.parquet")
    return table.sort_by([("id", "ascending"), ("receiver", "ascending")]).to_pylist()
