"""The capture process on real links: veth pairs between namespaces that these tests make and hold by descriptors."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import RawPcapReader

from testbed.capture.records import read_records
from testbed.links.namespaces import inside, make_network

pytestmark = [
    pytest.mark.netns,
    pytest.mark.root,
    pytest.mark.skipif(not shutil.which("ip"), reason="no ip; apt-get install iproute2"),
]

PATIENCE_S = 60.0
PAIRS = 150  # of packets; they fit into the smallest buffer even while the worker does not run


class Link:
    """A veth pair: `l<n>` in the core, `eth0` in a namespace of its own."""

    def __init__(self, core: int, number: int, held: ExitStack) -> None:
        self.core = core
        self.node = make_network()
        held.callback(os.close, self.node)
        self.port = f"l{number}"
        self.name = f"n{number}"
        with inside(core):
            _ip("link", "add", self.port, "type", "veth", "peer", "name", "far")
            _ip(
                "link", "set", "far", "netns", f"/proc/{os.getpid()}/fd/{self.node}", "name", "eth0"
            )

    def order(self, folder: Path, snaplen: int = 65535) -> dict[str, Any]:
        return {
            "link": self.name,
            "path": str(folder / f"{self.name}.pcap"),
            "snaplen": snaplen,
            "up": {"ns": f"/proc/{os.getpid()}/fd/{self.core}", "ifname": self.port},
            "down": {"ns": f"/proc/{os.getpid()}/fd/{self.node}", "ifname": "eth0"},
        }

    def raise_(self) -> None:
        for namespace, ifname in ((self.core, self.port), (self.node, "eth0")):
            with inside(namespace):
                _ip("link", "set", ifname, "up")
        for namespace, ifname in ((self.core, self.port), (self.node, "eth0")):
            with inside(namespace):
                eventually(lambda: _carries(ifname))  # noqa: B023 - called at once

    @contextmanager
    def sender(self, direction: str) -> Iterator[Callable[[bytes], int]]:
        """Send frames up (from the node) or down (from the core)."""
        namespace, ifname = (self.node, "eth0") if direction == "up" else (self.core, self.port)
        with inside(namespace):
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        with closing(raw):
            raw.bind((ifname, 0))
            yield raw.send


class Worker:
    """The process under test, and the connection to it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "testbed.capture.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        for end in (self.process.stdin, self.process.stdout):
            if end:
                end.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def _carries(ifname: str) -> bool:
    """Whether the interface carries frames: the kernel drops them until it has noticed that both ends are up."""
    show = ["ip", "-json", "link", "show", ifname]
    (metadata,) = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)
    return bool(metadata["operstate"] == "UP" and metadata["qdisc"] != "noop")


def frame(number: int, size: int = 60) -> bytes:
    """A broadcast frame of the local experimental EtherType that carries a number."""
    head = b"\xff" * 6 + b"\x02tb\x00\x00\x01" + b"\x88\xb5" + struct.pack("!Q", number)
    return head.ljust(size, b"\0")


def number_of(data: bytes) -> int:
    return int(struct.unpack_from("!Q", data, 14)[0])


def settled(worker: Worker) -> bool:
    """Whether the statistics no longer change."""
    before = worker.ask({"do": "stats"})
    time.sleep(0.3)
    return worker.ask({"do": "stats"}) == before


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until another process has made the condition true."""
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "the condition never became true"
        time.sleep(0.01)


@pytest.fixture
def core() -> Iterator[int]:
    namespace = make_network()
    yield namespace
    os.close(namespace)


@pytest.fixture
def link(core: int) -> Iterator[Link]:
    with ExitStack() as held:
        yield Link(core, 1, held)


@pytest.fixture
def worker() -> Iterator[Worker]:
    with closing(Worker()) as started:
        yield started


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_every_packet_of_both_directions_is_in_the_file_once_and_in_order(
    link: Link, worker: Worker, tmp_path: Path
) -> None:
    assert worker.ask({"do": "add", "links": [link.order(tmp_path)]}) == {"ok": True}
    link.raise_()
    before = time.time_ns()
    with link.sender("up") as up, link.sender("down") as down:
        for number in range(PAIRS):
            up(frame(2 * number))
            down(frame(2 * number + 1, size=1000))
    after = time.time_ns()
    answer = worker.ask({"do": "stop"})
    assert answer["links"]["n1"] == {"packets": 2 * PAIRS, "bytes": PAIRS * 1060, "dropped": 0}
    assert worker.process.wait(PATIENCE_S) == 0

    records = list(read_records(tmp_path / "n1.pcap"))
    times = [time_ns for time_ns, _, _ in records]
    assert [number_of(data) for _, _, data in records] == list(range(2 * PAIRS))
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= after
    assert any(time_ns % 1000 for time_ns in times), "nanoseconds were lost on the way"


def test_scapy_reads_the_file_as_nanosecond_ethernet(
    link: Link, worker: Worker, tmp_path: Path
) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path, snaplen=40)]})
    link.raise_()
    with link.sender("up") as up:
        up(frame(7, size=900))
    worker.ask({"do": "stop"})
    with RawPcapReader(str(tmp_path / "n1.pcap")) as reader:
        assert (reader.nano, reader.linktype) == (True, 1)
        ((data, metadata),) = list(reader)
    assert data == frame(7, size=900)[:40]
    assert (metadata.caplen, metadata.wirelen) == (40, 900)


@pytest.mark.parametrize(("before", "after"), [(40, 100), (100, 40)])
def test_another_snaplen_applies_from_the_next_request_on(
    link: Link, worker: Worker, tmp_path: Path, before: int, after: int
) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path, snaplen=before)]})
    link.raise_()
    with link.sender("up") as up:
        up(frame(1, size=900))
        worker.ask({"do": "add", "links": [link.order(tmp_path, snaplen=after)]})
        up(frame(2, size=900))
        worker.ask({"do": "stop"})
    with RawPcapReader(str(tmp_path / "n1.pcap")) as reader:
        assert reader.snaplen == 100, "the header promises the longest record"
        assert [metadata.caplen for _, metadata in reader] == [before, after]


def test_the_file_is_readable_while_it_grows_and_after_kill_9(
    link: Link, worker: Worker, tmp_path: Path
) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    path = tmp_path / "n1.pcap"
    with link.sender("up") as up:
        up(frame(0))
        eventually(lambda: len(list(read_records(path))) == 1)
        for number in range(1, 20_000):
            up(frame(number, size=200))
            if number == 15_000:
                worker.process.send_signal(signal.SIGKILL)
    worker.process.wait()
    with RawPcapReader(str(path)) as reader:
        numbers = [number_of(data) for data, _ in reader]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0


def test_the_worker_after_a_killed_one_appends_to_the_same_file(
    link: Link, worker: Worker, tmp_path: Path
) -> None:
    path = tmp_path / "n1.pcap"
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    with link.sender("up") as up:
        up(frame(0))
        eventually(lambda: len(list(read_records(path))) == 1)
        worker.process.kill()
        worker.process.wait()
        with path.open("ab") as file:
            file.write(b"cut record")
        with closing(Worker()) as follower:
            follower.ask({"do": "add", "links": [link.order(tmp_path)]})
            up(frame(1))
            answer = follower.ask({"do": "stop"})
    assert [number_of(data) for _, _, data in read_records(path)] == [0, 1]
    assert answer["links"]["n1"] == {"packets": 2, "bytes": 120, "dropped": 0}


def test_stats_count_while_the_capture_runs(link: Link, worker: Worker, tmp_path: Path) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    with link.sender("up") as up:
        for number in range(10):
            up(frame(number))
    expected = {"packets": 10, "bytes": 600, "dropped": 0}
    eventually(lambda: worker.ask({"do": "stats"})["links"]["n1"] == expected)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_a_stop_without_a_request_completes_the_files_too(
    link: Link, worker: Worker, tmp_path: Path, how: str
) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    with link.sender("up") as up:
        for number in range(100):
            up(frame(number))
    if how == "SIGTERM":
        worker.process.send_signal(signal.SIGTERM)
    elif worker.process.stdin:
        worker.process.stdin.close()
    assert worker.process.wait(PATIENCE_S) == 0
    assert len(list(read_records(tmp_path / "n1.pcap"))) == 100


def test_an_interface_may_go_down_and_up_again(link: Link, worker: Worker, tmp_path: Path) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    with link.sender("up") as up:
        up(frame(0))
        with inside(link.core):
            _ip("link", "set", link.port, "down")
        link.raise_()
        up(frame(1))
    worker.ask({"do": "stop"})
    records = list(read_records(tmp_path / "n1.pcap"))
    assert [number_of(data) for _, _, data in records] == [0, 1]


def sockets_of(pid: int) -> int:
    """How many sockets the process has open."""
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was just closed
            found += "socket" in str(descriptor.readlink())
    return found


def test_a_removed_link_frees_its_namespace_and_may_come_back(
    core: int, worker: Worker, tmp_path: Path
) -> None:
    with ExitStack() as held:
        first = Link(core, 1, held)
        worker.ask({"do": "add", "links": [first.order(tmp_path)]})
        first.raise_()
        with first.sender("up") as up:
            up(frame(0))
        with inside(core):
            _ip("link", "del", first.port)
    eventually(lambda: sockets_of(worker.process.pid) == 0)
    with ExitStack() as held:
        second = Link(core, 1, held)
        assert worker.ask({"do": "add", "links": [second.order(tmp_path)]})["ok"]
        second.raise_()
        with second.sender("down") as down:
            down(frame(1))
        answer = worker.ask({"do": "stop"})
    assert answer["links"]["n1"]["packets"] == 2
    records = list(read_records(tmp_path / "n1.pcap"))
    assert [number_of(data) for _, _, data in records] == [0, 1]


def test_a_vlan_tag_is_kept(link: Link, worker: Worker, tmp_path: Path) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    tagged = frame(3)[:12] + b"\x81\x00\x00\x05" + frame(3)[12:]
    with link.sender("up") as up:
        up(tagged)
    worker.ask({"do": "stop"})
    ((_, length, data),) = read_records(tmp_path / "n1.pcap")
    assert data == tagged
    assert length == len(tagged)


def test_a_request_that_cannot_be_met_changes_nothing_and_reports_the_reason(
    link: Link, worker: Worker, tmp_path: Path
) -> None:
    wrong = link.order(tmp_path)
    wrong["link"], wrong["down"]["ifname"] = "n2", "eth7"
    answer = worker.ask({"do": "add", "links": [link.order(tmp_path), wrong]})
    assert not answer["ok"]
    assert "n2: cannot listen on eth7" in answer["error"]
    assert worker.ask({"do": "stats"})["links"] == {}
    assert worker.ask({"do": "add", "links": [link.order(tmp_path)]}) == {"ok": True}


def test_many_links_are_captured_at_once(core: int, worker: Worker, tmp_path: Path) -> None:
    count = 30
    with ExitStack() as held:
        links = [Link(core, number, held) for number in range(1, count + 1)]
        orders = [link.order(tmp_path) for link in links]
        assert worker.ask({"do": "add", "links": orders})["ok"]
        for link in links:
            link.raise_()
            with link.sender("up") as up, link.sender("down") as down:
                up(frame(0))
                down(frame(1))
        answer = worker.ask({"do": "stop"})
    assert {counts["packets"] for counts in answer["links"].values()} == {2}
    assert len(answer["links"]) == count


def test_packets_dropped_at_a_full_buffer_are_counted(
    link: Link, worker: Worker, tmp_path: Path
) -> None:
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    sent = 20_000
    worker.process.send_signal(signal.SIGSTOP)
    with link.sender("up") as up:
        for number in range(sent):
            up(frame(number, size=1500))
    worker.process.send_signal(signal.SIGCONT)
    counts = worker.ask({"do": "stop"})["links"]["n1"]
    assert counts["dropped"] > 0
    assert counts["packets"] + counts["dropped"] == sent
    assert len(list(read_records(tmp_path / "n1.pcap"))) == counts["packets"]


def test_a_full_disk_is_reported_and_survived(link: Link, worker: Worker, small_disk: Path) -> None:
    worker.ask({"do": "add", "links": [link.order(small_disk)]})
    link.raise_()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(128 << 10))
    before_full, after_full = 400, 10
    with link.sender("up") as up:
        for number in range(before_full):
            up(frame(number, size=1500))
        eventually(lambda: "error" in worker.ask({"do": "stats"}))
        eventually(lambda: settled(worker))
        ballast.unlink()
        for number in range(before_full, before_full + after_full):
            up(frame(number, size=1500))
    answer = worker.ask({"do": "stop"})
    counts = answer["links"]["n1"]
    assert "No space left" in answer["error"]
    assert counts["dropped"] > 0
    assert counts["packets"] + counts["dropped"] == before_full + after_full
    numbers = [number_of(data) for _, _, data in read_records(small_disk / "n1.pcap")]
    assert len(numbers) == counts["packets"]
    assert numbers[-after_full:] == list(range(before_full, before_full + after_full))


def test_tshark_reads_the_same_packets(link: Link, worker: Worker, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("no tshark; apt-get install tshark")
    worker.ask({"do": "add", "links": [link.order(tmp_path)]})
    link.raise_()
    with link.sender("up") as up:
        for number in range(20):
            up(frame(number, size=100 + number))
    worker.ask({"do": "stop"})
    path = tmp_path / "n1.pcap"
    fields = ("-e", "frame.time_epoch", "-e", "frame.len")
    output = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *fields],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    read = [line.split("\t") for line in output.splitlines()]
    packets = [(int(Decimal(moment) * 10**9), int(length)) for moment, length in read]
    assert packets == [(time_ns, length) for time_ns, length, _ in read_records(path)]


def test_the_capture_works_the_same_without_root(tmp_path: Path) -> None:
    """Run this file again in a user namespace, where root has no rights over the machine (and no large buffers)."""
    again = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--net"),
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--basetemp", str(tmp_path / "t"), "-k", "not without_root and not full_disk"),
            __file__,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stdout + again.stderr
