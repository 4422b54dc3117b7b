"""What runs on a board beside its node, tried in namespaces: links shaped by real `tc`, and captures that survive."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from board_bench import BOARD, FAR_PEER, PEER, PORT, STRANGER, Bench, eventually
from testbed import capture_zipapp, zipapp
from testbed.capture.records import read_records
from testbed.links.namespaces import inside

pytestmark = [
    pytest.mark.netns,
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("tc"), reason="no tc; apt-get install iproute2"),
]

SSH = 2222


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    zipapp.build(folder / "nodes.pyz")
    capture_zipapp.build(folder / "capture.pyz")
    return folder


@pytest.fixture
def bench(programs: Path) -> Iterator[Bench]:
    with ExitStack() as held:
        yield Bench(held, programs)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    return tmp_path / "links.json"


def write(path: Path, **lines: Any) -> Path:
    peers = lines.pop("peers", [PEER, "10.77.0.0/16"])
    path.write_text(json.dumps({"interface": "eth0", "peers": peers, **lines}))
    return path


def is_shaped(bench: Bench, direction: str, address: str, rate_bps: float) -> bool:
    heard = bench.measure(direction, address)
    return len(heard.times) >= 30 and heard.rate_bps == pytest.approx(rate_bps, rel=0.08)


def passes_at_once(bench: Bench, direction: str, address: str) -> bool:
    heard = bench.measure(direction, address, wait_s=0.3)
    return len(heard.times) == 60 and heard.times[-1] - heard.times[0] < 0.2


def is_cut(bench: Bench, direction: str, address: str) -> bool:
    return not bench.measure(direction, address, count=10, wait_s=0.4).times


def test_peers_are_shaped_and_nobody_else(bench: Bench, links: Path) -> None:
    write(links, up={"rate_bps": 400e3}, down={"rate_bps": 800e3})
    assert bench.did("shape", links) == {"changed": True}
    for peer in (PEER, FAR_PEER):
        assert is_shaped(bench, "up", peer, 400e3)
        assert is_shaped(bench, "down", peer, 800e3)
    for direction in ("up", "down"):
        assert passes_at_once(bench, direction, STRANGER)


def test_the_queue_in_front_of_a_line_holds_what_was_asked(bench: Bench, links: Path) -> None:
    write(links, up={"rate_bps": 400e3, "queue_bytes": 20_000})
    bench.did("shape", links)
    heard = bench.measure("up", PEER)
    assert 17 <= len(heard.times) <= 25  # 1,042 bytes each, and what left meanwhile
    assert passes_at_once(bench, "down", PEER)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_cut_direction_is_cut_for_peers(bench: Bench, links: Path, direction: str) -> None:
    write(links, **{direction: {"cut": True, "rate_bps": 1e6}})
    bench.did("shape", links)
    other = "down" if direction == "up" else "up"
    assert is_cut(bench, direction, PEER)
    assert passes_at_once(bench, other, PEER)
    assert passes_at_once(bench, direction, STRANGER)


def test_a_second_time_changes_nothing(bench: Bench, links: Path) -> None:
    write(links, up={"rate_bps": 400e3}, down={"cut": True})
    assert bench.did("shape", "--show", links)["changed"] is True
    bench.did("shape", links)
    before = bench.state()
    assert bench.did("shape", links) == {"changed": False}
    shown = bench.did("shape", "--show", links)
    assert shown["changed"] is False
    assert shown["wanted"]["up"]["rate_bps"] == 400e3
    assert shown["wanted"]["commands"]
    assert shown["in_force"]["disciplines"]["eth0"]["7bed:"] == "htb"
    assert bench.state() == before


def test_values_change_while_it_runs(bench: Bench, links: Path) -> None:
    bench.did("shape", write(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3}))
    assert bench.did("shape", write(links, up={"cut": True}, down={"rate_bps": 800e3})) == {
        "changed": True
    }
    assert is_cut(bench, "up", PEER)
    assert is_shaped(bench, "down", PEER, 800e3)
    bench.did("shape", write(links, up={"rate_bps": 800e3}, peers=[STRANGER]))
    assert is_shaped(bench, "up", STRANGER, 800e3)
    for direction in ("up", "down"):
        assert passes_at_once(bench, direction, PEER)


def test_unshape_leaves_the_interface_as_it_was_found(bench: Bench, links: Path) -> None:
    bench.ip("link", "set", "eth0", "gso_max_segs", "40")
    found = bench.state()
    bench.did("shape", write(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3}))
    assert bench.state()["offloads"] == '{"eth0": []}'
    bench.did("shape", write(links, up={"rate_bps": 200e3}, down={"rate_bps": 400e3}))
    assert bench.did("unshape", links) == {"changed": True}
    assert bench.state() == found
    assert bench.did("unshape", links) == {"changed": False}
    links.unlink()
    assert bench.did("unshape", links) == {"changed": False}
    assert bench.state() == found


def test_a_file_that_asks_for_nothing_takes_the_shaping_off(bench: Bench, links: Path) -> None:
    found = bench.state()
    assert bench.did("shape", write(links)) == {"changed": False}
    bench.did("shape", write(links, up={"rate_bps": 400e3}))
    assert bench.did("shape", write(links)) == {"changed": True}
    assert bench.state() == found


@pytest.mark.parametrize("missing", ["root", "ingress", "filters", "note", "shaper"])
def test_what_was_half_taken_away_is_put_right_or_taken_away(
    bench: Bench, links: Path, missing: str
) -> None:
    write(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3})
    found = bench.state()
    for wanted in ("shape", "unshape"):
        bench.did("shape", links)
        (device,) = bench.devices()
        match missing:
            case "root" | "ingress":
                bench.tc("qdisc", "del", "dev", "eth0", missing)
            case "filters":
                bench.tc("filter", "del", "dev", "eth0", "parent", "7bed:")
            case "shaper":
                bench.tc("qdisc", "del", "dev", device, "root")
            case "note":
                # Unplugged of its device, nobody knows any more how the offloads were.
                bench.ip("link", "del", device)
        assert bench.did(wanted, links) == {"changed": True}
        if wanted == "shape":
            assert is_shaped(bench, "up", PEER, 400e3)
            assert is_shaped(bench, "down", PEER, 400e3)
    left = bench.state()
    assert left["disciplines"] == found["disciplines"]
    assert bench.devices() == []
    assert left == found or missing == "note"


def test_a_device_whose_maker_died_at_once_is_used_and_removed(bench: Bench, links: Path) -> None:
    write(links, up={"rate_bps": 400e3})
    found = bench.state()
    bench.did("shape", links)
    (device,) = bench.devices()
    bench.did("unshape", links)
    bench.ip("link", "add", "name", device, "type", "ifb")
    assert bench.did("unshape", links) == {"changed": True}
    bench.ip("link", "add", "name", device, "type", "ifb")
    bench.did("shape", links)
    assert is_shaped(bench, "up", PEER, 400e3)
    bench.did("unshape", links)
    assert bench.state() == found


def test_what_somebody_else_has_set_is_left_alone(
    bench: Bench, links: Path, tmp_path: Path
) -> None:
    write(links, up={"rate_bps": 400e3})
    bench.tc("qdisc", "add", "dev", "eth0", "root", "handle", "9:", "tbf", "rate", "1gbit",
             "burst", "100000", "limit", "100000")  # fmt: skip
    found = bench.state()
    done = bench.run("shape", links)
    assert (done.returncode, done.stdout) == (1, "")
    assert "eth0 has queueing disciplines of somebody else (tbf)" in done.stderr
    assert bench.did("unshape", links) == {"changed": False}
    assert bench.state() == found
    bench.tc("qdisc", "del", "dev", "eth0", "root")
    bench.did("shape", links)
    found = bench.state()
    other = write(tmp_path / "other.json", up={"rate_bps": 1e6})
    done = bench.run("shape", other)
    assert done.returncode == 1
    assert f"eth0 is shaped already, by {links}" in done.stderr
    assert bench.did("unshape", other) == {"changed": False}
    assert bench.state() == found


def test_an_interface_that_is_not_there_or_gone(bench: Bench, links: Path) -> None:
    write(links, up={"rate_bps": 400e3})
    bench.did("shape", links)
    bench.unplug()
    done = bench.run("shape", links)
    assert (done.returncode, done.stderr) == (1, "there is no interface eth0\n")
    assert bench.did("unshape", links) == {"changed": False}
    assert bench.devices() == []


def test_where_programs_are_not_taken_u32_serves(bench: Bench, links: Path, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "tc"
    shim.parent.mkdir()
    shim.write_text(
        f'#!/bin/sh\nfor word; do [ "$word" = bpf ] && exit 2; done\nexec {shutil.which("tc")} "$@"\n'
    )
    shim.chmod(0o755)
    way = {"PATH": f"{shim.parent}:{os.environ['PATH']}"}
    strangers = [f"198.51.100.{number}" for number in range(0, 120, 2)]
    write(links, up={"rate_bps": 400e3}, down={"rate_bps": 800e3}, peers=[*strangers, PEER])
    found = bench.state()
    bench.did("shape", links, **way)
    assert "u32" in bench.state()["filters"]
    assert bench.did("shape", links, **way) == {"changed": False}
    assert is_shaped(bench, "up", PEER, 400e3)
    assert is_shaped(bench, "down", PEER, 800e3)
    assert passes_at_once(bench, "up", STRANGER)
    assert passes_at_once(bench, "down", STRANGER)
    bench.did("unshape", links, **way)
    assert bench.state() == found


def test_many_peers(bench: Bench, links: Path) -> None:
    others = [f"198.51.{number // 100}.{2 * (number % 100)}" for number in range(700)]
    bench.did("shape", write(links, down={"rate_bps": 400e3}, peers=[*others, PEER]))
    assert is_shaped(bench, "down", PEER, 400e3)
    assert passes_at_once(bench, "down", STRANGER)


def test_delay_is_served_or_refused_by_name(bench: Bench, links: Path) -> None:
    write(links, up={"delay_s": 0.1, "rate_bps": 1e6})
    found = bench.state()
    done = bench.run("shape", links)
    if done.returncode:
        assert done.returncode == 1
        assert "`up` asks for delay, jitter or loss, and this kernel has no netem" in done.stderr
        assert bench.state() == found
    else:
        assert "netem" in bench.state()["disciplines"]


@pytest.mark.netem
def test_delay_and_loss_of_peers_only(bench: Bench, links: Path) -> None:
    write(links, up={"delay_s": 0.2}, down={"delay_s": 0.1, "loss": 0.5, "rate_bps": 8e6})
    bench.did("shape", links)
    for direction, delay in (("up", 0.2), ("down", 0.1)):
        with bench.listening(direction, PEER) as times:
            sent = time.monotonic()
            for _ in range(8):
                bench.send(direction, PEER, 1)
            eventually(lambda: times)
            assert delay <= times[0] - sent < delay + 0.08
    assert 30 < len(bench.measure("down", PEER, count=100).times) < 70
    assert passes_at_once(bench, "up", STRANGER)
    assert passes_at_once(bench, "down", STRANGER)


class Capture:
    """capture.pyz on the board."""

    def __init__(self, bench: Bench, folder: Path, *more: object) -> None:
        self.file, self.account = folder / "capture.pcap", folder / "capture.json"
        folder.mkdir(exist_ok=True)
        program = bench.programs / "capture.pyz"
        before = self.account.stat().st_mtime_ns if self.account.exists() else 0
        self.process = subprocess.Popen(
            bench.command(
                *(sys.executable, "-I", "-S", "-W", "error", program, "--interface", "eth0"),
                *("--file", self.file, "--account", self.account),
                *("--without-port", SSH, "--without-port", "22", *more),
            )
        )
        eventually(
            lambda: (
                (self.account.exists() and self.account.stat().st_mtime_ns > before)
                or self.process.poll() is not None
            )
        )

    def told(self) -> Any:
        return json.loads(self.account.read_bytes())

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
        return self.process.wait(20)


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
        times = [about.sec * 10**9 + about.usec for _, about in reader]
    assert times == sorted(times)
    assert began < times[0] <= times[-1] < time.time_ns()
    told = capture.told()
    assert began < told["began_ns"] < told["until_ns"]
    lengths = [length for _, length, _ in read_records(capture.file)]
    assert {name: told[name] for name in ("packets", "bytes", "dropped", "error", "ended", "gaps")} == {
        "packets": len(lengths), "bytes": sum(lengths), "dropped": 0, "error": "", "ended": True, "gaps": [],
    }  # fmt: skip


def talk(bench: Bench, port: int) -> None:
    """A short TCP connection to the board, over IPv4."""
    with inside(bench.board):
        server = socket.create_server((BOARD, port))
    with server:
        with inside(bench.neighbour):
            client = socket.create_connection((BOARD, port), 5)
        with client:
            there, _ = server.accept()
            with there:
                client.sendall(b"hello")
                assert there.recv(5) == b"hello"


@pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark; apt-get install tshark")
def test_tshark_reads_it_with_right_checksums(bench: Bench, links: Path, capturing: Any) -> None:
    """Also of what the board sends, as offloads are off while its link is shaped."""
    bench.did("shape", write(links, up={"rate_bps": 1e6}))
    capture = capturing()
    talk(bench, 7878)
    assert capture.end() == 0
    asked = ["tshark", "-r", capture.file, "-o", "tcp.check_checksum:TRUE", "-T", "fields",
             "-e", "ip.src", "-e", "tcp.checksum.status", "tcp.port == 7878"]  # fmt: skip
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    of_board = [line.split()[1] for line in said.splitlines() if line.split()[0] == BOARD]
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
    eventually(lambda: first.told()["packets"] >= 50)
    first.end(signal.SIGKILL)
    whole = first.file.stat().st_size
    with first.file.open("ab") as torn:  # as a loss of power leaves it
        torn.write(b"\x01\x02\x03")
    assert not first.told()["ended"]
    bench.send("up", PEER, 7)
    second = capturing()
    assert second.file.stat().st_size >= whole
    bench.send("up", PEER, 20)
    assert second.end() == 0
    assert second.numbers() == [*range(50), *range(20)]
    told = second.told()
    assert told["ended"]
    assert told["packets"] == len(list(read_records(second.file)))
    ((since, until),) = told["gaps"]
    assert told["began_ns"] < since < until < told["until_ns"]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_costs_packets_and_is_told(
    bench: Bench, capturing: Any, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", "512k") as disk:
        (disk / "filler").write_bytes(bytes(256 << 10))
        capture = capturing(disk)
        for _ in range(20):
            bench.send("up", PEER, 30)
            time.sleep(0.05)
        eventually(lambda: capture.told()["dropped"] > 0)
        told = capture.told()
        assert "No space left" in told["error"]
        assert told["packets"] > 50
        on_disk = list(read_records(capture.file))
        assert on_disk[-1][2], "whole records, and readable"
        (disk / "filler").unlink()
        bench.send("up", PEER, 20)
        assert capture.end() == 0
        told = capture.told()
        assert capture.numbers()[-20:] == [*range(20)]
        assert told["ended"]
        assert told["packets"] == len(list(read_records(capture.file)))
        assert told["packets"] + told["dropped"] >= 620


def test_shaped_packets_are_captured_behind_the_shaper(
    bench: Bench, links: Path, capturing: Any
) -> None:
    """As in a lab: a packet is captured once, when it arrives, and not if the line has lost it."""
    bench.did("shape", write(links, up={"rate_bps": 400e3}, down={"rate_bps": 400e3}))
    capture = capturing()
    for direction in ("up", "down"):
        bench.measure(direction, PEER, count=40)
    bench.send("down", STRANGER, 5)
    time.sleep(0.2)
    bench.did("shape", write(links, down={"cut": True}))
    time.sleep(1.5)  # the capture looks each second
    bench.send("down", PEER, 9)
    time.sleep(0.3)
    bench.did("unshape", links)
    time.sleep(1.5)
    bench.send("down", PEER, 3)
    assert capture.end() == 0
    assert capture.numbers(source=BOARD) == [*range(40)]
    assert capture.numbers(source=PEER) == [*range(40), *range(3)]
    assert capture.numbers(source=STRANGER) == [*range(5)]
    assert capture.told()["dropped"] == 0
    times = [
        time_ns / 1e9 for time_ns, length, data in read_records(capture.file)
        if length == 1042 and data[26:30] == bytes(map(int, PEER.split(".")))
    ][:40]  # fmt: skip
    assert 8 * 1042 * 39 / (times[-1] - times[0]) == pytest.approx(400e3, rel=0.05)


def test_an_interface_that_comes_back_is_heard_again(bench: Bench, capturing: Any) -> None:
    capture = capturing()
    bench.send("up", PEER, 4)
    eventually(lambda: len(capture.numbers()) == 4)
    bench.unplug()
    eventually(lambda: "eth0 is gone" in capture.told()["error"])
    bench.plug_in()
    eventually(lambda: capture.told()["error"] == "")
    bench.send("up", PEER, 6)
    assert capture.end() == 0
    assert capture.numbers() == [*range(4), *range(6)]


def test_an_interface_that_is_not_there_is_told(bench: Bench, capturing: Any) -> None:
    bench.unplug()
    capture = capturing()
    assert capture.process.wait(20) == 1
    assert capture.told()["error"] == "cannot listen on eth0: No such device"
