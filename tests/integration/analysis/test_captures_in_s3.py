"""Captures in S3, emulated by `moto_server` (pip install 'moto[server]'): Spark's workers read their addresses."""

import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

from analysis.captures.files import find_files
from analysis.captures.source import register
from analysis.packets import count_packets
from support.captures.capture_files import START_NS, Captured, pcap, read_all
from support.ports import ReservedPorts

pytestmark = [
    pytest.mark.spark,
    pytest.mark.peers,
    pytest.mark.skipif(shutil.which("moto_server") is None, reason="no moto_server"),
]
PATIENCE_S = 60
PLAIN = {"Content-Type": "application/octet-stream"}


def put(address: str, data: bytes) -> None:
    """Create a bucket, or an object in one."""
    asked = urllib.request.Request(address, data, PLAIN, method="PUT")
    urllib.request.urlopen(asked, timeout=PATIENCE_S).close()


@pytest.fixture
def bucket(tmp_path):
    """The address of a folder in a bucket, without and with its options, and the same folder on this machine."""
    ports = ReservedPorts()
    port = ports.reserve()
    server = subprocess.Popen(
        ["moto_server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        put(f"http://127.0.0.1:{port}/captures", b"")
        for number in range(3):
            made = pcap(Captured(bytes(99), START_NS + n) for n in range(1000 * (number + 1)))
            (tmp_path / f"{number}.pcap").write_bytes(made)
            put(f"http://127.0.0.1:{port}/captures/run/{number}.pcap", made)
        yield (
            f"s3://key:secret@captures/run?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:{port}",
            tmp_path,
        )
    finally:
        server.terminate()
        server.wait(PATIENCE_S)
        ports.close()


def test_workers_read_a_bucket_as_they_read_a_folder(spark, bucket):
    address, folder = bucket
    register(spark)
    frame = spark.read.format("pcap").option("piece_bytes", 50_000).load(address)
    found = sorted((row.ts_ns, row.offset) for row in frame.select("ts_ns", "offset").collect())
    paths = sorted(folder.glob("*.pcap"))
    here = [row for path in paths for row in read_all(path).rows]
    assert found == sorted((row["ts_ns"], row["offset"]) for row in here)
    assert frame.rdd.getNumPartitions() > 5
    counted = count_packets(spark, find_files([address]), None, lambda *_: None)
    assert counted["packets"] == 6000
