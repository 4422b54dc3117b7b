"""`testbed packets`: any captures to Parquet, and an exit code for what could not be read."""

import json
from contextlib import nullcontext

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from analysis.captures.columns import SCHEMA
from analysis.captures.records import CUT_OFF
from analysis.packets import count_packets
from support.captures.capture_files import START_NS, Captured, pcap
from support.runs.star_runs import Host, arp, packet
from testbed.cli.app import app
from testbed.cli.commands.export import tables

pytestmark = pytest.mark.spark

ONE, TWO = Host("one", 1, "10.77.0.1"), Host("two", 2, "10.77.0.2")
PACKETS = [
    *(
        Captured(packet(ONE, TWO, (1, 2), number, 7, 16, b"x"), START_NS + number)
        for number in range(9)
    ),
    Captured(arp(ONE), START_NS + 9),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "good.pcap").write_bytes(pcap(PACKETS))
    (tmp_path / "cut.pcap").write_bytes(pcap(PACKETS)[:-5])
    return tmp_path


def test_packets_are_counted_and_written(spark, folder):
    target, steps = folder / "packets.parquet", []
    files = [str(folder / "cut.pcap"), str(folder / "good.pcap")]
    document = count_packets(spark, files, target, lambda *step: steps.append(step))
    assert document == {
        "files": 2,
        "packets": 19,
        "wire_bytes": 18 * 55 + 42,
        "first_ns": START_NS,
        "last_ns": START_NS + 9,
        "kinds": [
            {"kind": "tcp", "packets": 18, "wire_bytes": 18 * 55},
            {"kind": "arp", "packets": 1, "wire_bytes": 42},
        ],
        "problems": [
            {"path": files[0], "offset": 24 + 9 * 71, "bytes": 53, "reason": CUT_OFF},
        ],
        "parquet": str(target),
    }
    table = pq.read_table(target)
    assert table.schema.names == SCHEMA.names
    assert len(table) == 19
    assert sorted(set(table["ip_src"].to_pylist()), key=str) == ["10.77.0.1", None]
    assert [stage for stage, done, total in steps if done == total] == ["reading the packets"]
    assert count_packets(spark, files, None, lambda *_: None) == {**document, "parquet": None}
    assert len(tables(document)) == 3


@pytest.fixture
def command(spark, monkeypatch):
    """Run the command in the Spark session that all tests share."""
    monkeypatch.setattr("analysis.packets.open_session", lambda *_, **__: nullcontext(spark))
    return lambda *arguments: CliRunner().invoke(app, ["packets", *map(str, arguments)])


def test_the_exit_code_reports_bytes_that_could_not_be_read(command, folder):
    done = command(folder / "*.pcap", "--json")
    assert done.exit_code == 3
    document = json.loads(done.stdout)
    assert (document["packets"], len(document["problems"])) == (19, 1)
    assert "53 bytes in 1 places of 1 files could not be read" in done.stderr
    assert command(folder / "good.pcap", "--to", folder / "good.parquet").exit_code == 0
    (folder / "none.pcap").write_text("no capture at all, but text")
    done = command(folder / "none.pcap")
    assert done.exit_code == 1
    assert "no capture could be read" in done.stderr


def test_wrong_paths_are_wrong_input(command, folder):
    done = command(folder / "nothing.pcap")
    assert done.exit_code == 2
    assert "there is no capture at" in done.stderr
    (folder / "there.parquet").mkdir()
    done = command(folder / "good.pcap", "--to", folder / "there.parquet")
    assert done.exit_code == 1
    assert "exists already" in done.stderr
