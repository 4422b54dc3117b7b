"""Captures of boards: both directions, behind the shaper, after a kill and on a full disk."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from support.boards.board_bench import (
    BOARD,
    NON_PEER,
    PATIENCE_S,
    PEER,
    PORT,
    Bench,
    eventually,
    write_links,
)
from testbed.capture.records import read_records
from testbed.links.namespaces import inside

pytestmark = [
    pytest.mark.netns,
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("tc"), reason="no tc; apt-get install iproute2"),
]

SSH = 2222


class Capture:
    """capture.pyz on the board."""

    def __init__(self, bench: Bench, folder: Path, *more: object) -> None:
        self.file, self.statistics_file = folder / "capture.pcap", folder / "capture.json"
        folder.mkdir(exist_ok=True)
        program = bench.programs / "capture.pyz"
        before = self.statistics_file.stat().st_mtime_ns if self.statistics_file.exists() else 0
        self.process = subprocess.Popen(
            bench.command(
                *(sys.executable, "-I", "-S", "-W", "error", program, "--interface", "eth0"),
                *("--file", self.file, "--statistics", self.statistics_file),
                *("--without-port", SSH, "--without-port", "22", *more),
            )
        )
        eventually(
            lambda: (
                (self.statistics_file.exists() and self.statistics_file.stat().st_mtime_ns > before)
                or self.process.poll() is not None
            )
        )

    def statistics(self) -> Any:
        return json.loads(self.statistics_file.read_bytes())

    def check_twice(self) -> None:
        """Wait for two checks of the interface, of which the second begins after this call."""
        for _ in range(2):
            before = self.statistics()["until_ns"]
            eventually(lambda: self.statistics()["until_ns"] > before)  # noqa: B023 - called at once

    def numbers(self, *, source: str = "", to: int = PORT) -> list[int]:
        """The numbers in our packets, in the order of the file."""
        found = []
        for _, _, data in read_records(self.file):
            if data[12:14] == b"\x08\x00" and data[36:38] == to.to_bytes(2, "big"):
                address = ".".join(map(str, data[26:30]))
                if address == source or not source:
                    found.append(int.from_bytes(data[42:50], "big"))
        return found

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(by)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def capturing(bench: Bench, tmp_path: Path) -> Iterator[Any]:
    started: list[Capture] = []

    def start(folder: Path | None = None, *more: object) -> Capture:
        started.append(Capture(bench, folder or tmp_path / "board", *more))
        return started[-1]

    yield start
    for capture in started:
        capture.end(signal.SIGKILL)


def test_both_directions_are_captured_but_for_the_labs_own_connection(
    bench: Bench, capturing: Any
) -> None:
    began = time.time_ns()
    capture = capturing()
    bench.send("up", PEER, 20, pause_s=0.002)
    bench.send("down", PEER, 30, pause_s=0.002)
    talk(bench, SSH)
    talk(bench, 7878)
    assert capture.end() == 0
    assert capture.numbers(source=BOARD) == [*range(20)]
    assert capture.numbers(source=PEER) == [*range(30)]
    assert capture.numbers(to=7878)
    assert not capture.numbers(to=SSH)
    with RawPcapReader(str(capture.file)) as reader:
        assert reader.nano
        times = [metadata.sec * 10**9 + metadata.usec for _, metadata in reader]
    assert times == sorted(times)
    assert began < times[0] <= times[-1] < time.time_ns()
    statistics = capture.statistics()
    assert began < statistics["began_ns"] < statistics["until_ns"]
    lengths = [length for _, length, _ in read_records(capture.file)]
    assert {name: statistics[name] for name in ("packets", "bytes", "dropped", "error", "ended", "gaps")} == {
        "packets": len(lengths), "bytes": sum(lengths), "dropped": 0, "error": "", "ended": True, "gaps": [],
    }  # fmt: skip


def talk(bench: Bench, port: int) -> None:
    """A short TCP connection to the board, over IPv4."""
    with inside(bench.board):
        server = socket.create_server((BOARD, port))
    with server:
        with inside(bench.neighbour):
            client = socket.create_connection((BOARD, port), PATIENCE_S)
        with client:
            there, _ = server.accept()
            with there:
                client.sendall(b"hello")
                assert there.recv(5) == b"hello"


@pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark; apt-get install tshark")
def test_tshark_reads_the_capture_with_right_checksums(
    bench: Bench, links: Path, capturing: Any
) -> None:
    """The checksums of packets from the board are right, too, because offloads are off while its link is shaped."""
    bench.did("shape", write_links(links, up={"rate_bps": 1e6}))
    capture = capturing()
    talk(bench, 7878)
    assert capture.end() == 0
    command = ["tshark", "-r", capture.file, "-o", "tcp.check_checksum:TRUE", "-T", "fields",
             "-e", "ip.src", "-e", "tcp.checksum.status", "tcp.port == 7878"]  # fmt: skip
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    of_board = [line.split()[1] for line in output.splitlines() if line.split()[0] == BOARD]
    assert of_board
    assert set(of_board) == {"1"}


def test_long_packets_are_cut_and_their_length_kept(bench: Bench, capturing: Any) -> None:
    capture = capturing(None, "--snaplen", 60)
    bench.send("up", PEER, 3)
    assert capture.end() == 0
    ours = [(length, len(data)) for _, length, data in read_records(capture.file) if length > 1000]
    assert ours == [(1042, 60)] * 3


def test_a_killed_capture_is_continued(bench: Bench, capturing: Any) -> None:
    first = capturing()
    bench.send("up", PEER, 50)
    eventually(lambda: len(first.numbers()) == 50)
    eventually(lambda: first.statistics()["packets"] >= 50)
    first.end(signal.SIGKILL)
    whole = first.file.stat().st_size
    with first.file.open("ab") as torn:  # as a power failure leaves it
        torn.write(b"\x01\x02\x03")
    assert not first.statistics()["ended"]
    bench.send("up", PEER, 7)
    second = capturing()
    assert second.file.stat().st_size >= whole
    bench.send("up", PEER, 20)
    assert second.end() == 0
    assert second.numbers() == [*range(50), *range(20)]
    statistics = second.statistics()
    assert statistics["ended"]
    assert statistics["packets"] == len(list(read_records(second.file)))
    ((since, until),) = statistics["gaps"]
    assert statistics["began_ns"] < since < until < statistics["until_ns"]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_costs_packets_and_is_reported(
    bench: Bench, capturing: Any, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        (disk / "filler").write_bytes(bytes(256 << 10))
        capture = capturing(disk)
        for _ in range(20):
            bench.send("up", PEER, 30)
            time.sleep(0.05)
        eventually(lambda: capture.statistics()["dropped"] > 0)
        statistics = capture.statistics()
        assert "No space left" in statistics["error"]
        assert statistics["packets"] > 50
        on_disk = list(read_records(capture.file))
        assert on_disk[-1][2], "whole records, and readable"
        (disk / "filler").unlink()
        bench.send("up", PEER, 20)
        assert capture.end() == 0
        statistics = capture.statistics()
        assert capture.numbers()[-20:] == [*range(20)]
        assert statistics["ended"]
        assert statistics["packets"] == len(list(read_records(capture.file)))
        assert statistics["packets"] + statistics["dropped"] >= 620


def test_shaped_packets_are_captured_behind_the_shaper(
    bench: Bench, links: Path, capturing: Any
) -> None:
    """As in a lab: a packet is captured once, when it arrives, and never if the link has lost it."""
    bench.did("shape", write_links(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3}))
    capture = capturing()
    for direction in ("up", "down"):
        bench.measure(direction, PEER, count=40, at_least=40)
    bench.send("down", NON_PEER, 5)
    eventually(lambda: len(capture.numbers(source=NON_PEER)) == 5)
    bench.did("shape", write_links(links, down={"cut": True}))
    capture.check_twice()
    bench.send("down", PEER, 9)
    time.sleep(0.3)
    bench.did("unshape", links)
    capture.check_twice()
    bench.send("down", PEER, 3)
    assert capture.end() == 0
    assert capture.numbers(source=BOARD) == [*range(40)]
    assert capture.numbers(source=PEER) == [*range(40), *range(3)]
    assert capture.numbers(source=NON_PEER) == [*range(5)]
    assert capture.statistics()["dropped"] == 0
    times = [
        time_ns / 1e9 for time_ns, length, data in read_records(capture.file)
        if length == 1042 and data[26:30] == bytes(map(int, PEER.split(".")))
    ][:40]  # fmt: skip
    assert 8 * 1042 * 39 / (times[-1] - times[0]) == pytest.approx(400e3, rel=0.05)


def test_an_interface_that_comes_back_is_captured_again(bench: Bench, capturing: Any) -> None:
    capture = capturing()
    bench.send("up", PEER, 4)
    eventually(lambda: len(capture.numbers()) == 4)
    bench.unplug()
    eventually(lambda: "eth0 is gone" in capture.statistics()["error"])
    bench.plug_in()
    eventually(lambda: capture.statistics()["error"] == "")
    bench.send("up", PEER, 6)
    assert capture.end() == 0
    assert capture.numbers() == [*range(4), *range(6)]


def test_a_missing_interface_is_reported(bench: Bench, capturing: Any) -> None:
    bench.unplug()
    capture = capturing()
    assert capture.process.wait(PATIENCE_S) == 1
    assert capture.statistics()["error"] == "cannot listen on eth0: No such device"
