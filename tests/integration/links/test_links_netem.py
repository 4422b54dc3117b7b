"""netem, the kernel's emulator, is exact: no packet is early, and the least delayed ones are not late.

A busy machine can only delay packets, so tests judge the smallest of several delays, and rates over many packets.
"""

import platform
import socket
import struct
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from testbed.topology.model import Emulator, Shape

pytestmark = [pytest.mark.netns, pytest.mark.root, pytest.mark.netem]

FREE = Shape()
SEEDED_SINCE = (6, 6)
KERNEL = tuple(int(part) for part in platform.release().split(".")[:2])
RETRANSMITTED = struct.Struct("100xI")  # tcpi_total_retrans in struct tcp_info
DIRECTIONS = pytest.mark.parametrize("direction", ["up", "down"])


@pytest.fixture(scope="module")
def lab(shared_wired: Any) -> Any:
    return shared_wired(Emulator.NETEM, ["n1", "n2"])


@pytest.fixture
def shape(lab: Any) -> Any:
    """shape(direction, shape): packets from n1 to n2 pass this link, on n1's way up or on n2's way down."""

    def one_way(direction: str, settings: Shape, seed: int = 1) -> None:
        up, down = (settings, FREE) if direction == "up" else (FREE, settings)
        lab.keeper.shape({"n1": (up, FREE), "n2": (FREE, down)}, seed)

    return one_way


def frames(lab: Any, tools: Any, size: int, count: int, gap_s: float = 0.0) -> list[Any]:
    """Send frames of this size from n1 to n2; return (number, sent at, arrived at), in the order of their arrival."""
    sent = []
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for number in range(count):
            sent.append(time.time_ns())
            payload = number.to_bytes(4) + bytes(size - tools.headers - 4)
            one.sendto(payload, (tools.address("n2"), tools.port))
            time.sleep(gap_s)
        arrived = tools.receive_all(other, 1.5, count)
    numbers = [(int.from_bytes(data[:4]), arrived_ns) for arrived_ns, data in arrived]
    return [(number, sent[number], arrived_ns) for number, arrived_ns in numbers]


def delays_s(arrivals: list[Any]) -> list[float]:
    return [(arrived_ns - sent) / 1e9 for _, sent, arrived_ns in arrivals]


@DIRECTIONS
def test_a_lone_kilobyte_takes_its_tenth_of_a_second_at_10_kilobytes_a_second(
    lab: Any, tools: Any, shape: Any, direction: str
) -> None:
    shape(direction, Shape(rate_bps=80_000))
    found = delays_s(frames(lab, tools, 1000, 7, gap_s=0.15))
    assert len(found) == 7
    assert min(found) >= 0.100  # no stored credit
    assert min(found) <= 0.100 + 0.004


def test_delay_and_serialisation_add_up(lab: Any, tools: Any, shape: Any) -> None:
    shape("up", Shape(rate_bps=800_000, delay_s=0.080))
    found = delays_s(frames(lab, tools, 1000, 9, gap_s=0.03))
    assert min(found) >= 0.090
    assert min(found) <= 0.090 + 0.002 + 0.02 * 0.080


@DIRECTIONS
def test_a_saturated_link_runs_at_its_rate(
    lab: Any, tools: Any, shape: Any, direction: str
) -> None:
    shape(direction, Shape(rate_bps=1_000_000, delay_s=0.02, queue_bytes=10**6))
    arrivals = frames(lab, tools, 1000, 250)
    assert [number for number, _, _ in arrivals] == list(range(250))
    took_s = (arrivals[-1][2] - arrivals[0][2]) / 1e9
    assert 249 * 8000 / took_s == pytest.approx(1_000_000, rel=0.03)


def test_tcp_saturates_a_link(lab: Any, tools: Any, shape: Any) -> None:
    shape("up", Shape(rate_bps=1_000_000, delay_s=0.02, queue_bytes=50_000))
    rate_bps, _ = stream(lab, tools, skip_s=1.5, seconds=4.0)
    assert rate_bps == pytest.approx(1_000_000, rel=0.03)


def test_a_full_queue_drops_packets_without_an_error_at_the_sender(
    lab: Any, tools: Any, shape: Any
) -> None:
    shape("up", Shape(rate_bps=1_000_000, delay_s=0.02, queue_bytes=15_000))
    _, retransmitted = stream(lab, tools, skip_s=0.5, seconds=2.0)
    assert retransmitted > 0


def stream(lab: Any, tools: Any, skip_s: float, seconds: float) -> tuple[float, int]:
    """TCP from n1 to n2: bits a second that arrived after the first moments; retransmitted segments."""
    with (
        lab.socket("n2", socket.SOCK_STREAM) as server,
        lab.socket("n1", socket.SOCK_STREAM) as client,
    ):
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((tools.address("n2"), 80))
        server.listen()
        client.connect((tools.address("n2"), 80))
        connection, _ = server.accept()
        enough = threading.Event()

        def send() -> None:
            while not enough.is_set():
                client.sendall(bytes(2000))
            client.shutdown(socket.SHUT_WR)

        def receive() -> None:
            while connection.recv(1 << 16):
                pass

        threads = [threading.Thread(target=work) for work in (send, receive)]
        for thread in threads:
            thread.start()
        time.sleep(skip_s)
        begin, before = time.monotonic(), arrived_bytes(lab, "n2")
        time.sleep(seconds)
        end, after = time.monotonic(), arrived_bytes(lab, "n2")
        enough.set()
        for thread in threads:
            thread.join()
        info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, RETRANSMITTED.size)
        connection.close()
    return (after - before) * 8 / (end - begin), RETRANSMITTED.unpack(info)[0]


def arrived_bytes(lab: Any, node: str) -> int:
    """Bytes of the frames that entered the node's interface."""
    table = Path(f"/proc/{lab.pids[node]}/net/dev").read_text()
    (line,) = [line for line in table.splitlines() if line.lstrip().startswith("eth0:")]
    return int(line.partition(":")[2].split()[0])


def test_jitter_moves_packets_within_its_bounds_and_keeps_their_order(
    lab: Any, tools: Any, shape: Any
) -> None:
    shape("up", Shape(delay_s=0.05, jitter_s=0.03))
    arrivals = frames(lab, tools, 200, 100, gap_s=0.005)
    assert [number for number, _, _ in arrivals] == list(range(100))
    assert all(a <= b for (_, _, a), (_, _, b) in pairwise(arrivals))
    found = delays_s(arrivals)
    assert 0.02 <= min(found) <= 0.05
    assert max(found) - min(found) >= 0.03


@pytest.mark.parametrize(("frame", "fitting"), [(100, 215), (1514, 14)])
def test_a_queue_holds_bytes_not_packets(
    lab: Any, tools: Any, shape: Any, frame: int, fitting: int
) -> None:
    shape("up", Shape(rate_bps=80_000, queue_bytes=20_000))
    sent_s = time.monotonic()
    arrivals = frames(lab, tools, frame, 2 * fitting)
    sent_s = (arrivals[-1][1] - arrivals[0][1]) / 1e9 if arrivals else time.monotonic() - sent_s
    freed = 10_000 * sent_s / frame  # places freed in the queue while n1 sent
    assert fitting <= len(arrivals) <= fitting + freed + 2


def test_the_loss_rate_is_the_requested_one(lab: Any, tools: Any, shape: Any) -> None:
    shape("up", Shape(loss=0.3))
    arrived = len(frames(lab, tools, 100, 600))  # not more than a socket's buffer holds
    assert 420 - 5 * 11.3 <= arrived <= 420 + 5 * 11.3  # five standard deviations


if KERNEL >= SEEDED_SINCE:

    def test_losses_follow_the_seed(lab: Any, tools: Any, shape: Any) -> None:
        shape("up", Shape(loss=0.3), seed=7)
        once = [number for number, _, _ in frames(lab, tools, 100, 200)]
        shape("up", Shape(loss=0.3), seed=7)
        assert [number for number, _, _ in frames(lab, tools, 100, 200)] == once
        shape("up", Shape(loss=0.3), seed=8)
        assert [number for number, _, _ in frames(lab, tools, 100, 200)] != once


def test_a_link_changes_while_packets_are_queued(lab: Any, tools: Any, shape: Any) -> None:
    shape("up", Shape(rate_bps=80_000, queue_bytes=20_000))
    with lab.socket("n1") as one, lab.socket("n2") as other:
        for number in range(5):
            one.sendto(number.to_bytes(4) + bytes(954), (tools.address("n2"), tools.port))
        shape("up", Shape(rate_bps=8_000_000))
        for number in range(5, 8):
            one.sendto(number.to_bytes(4) + bytes(954), (tools.address("n2"), tools.port))
        arrived = [
            int.from_bytes(data[:4]) for _, data in tools.receive_all(other, tools.patience_s, 8)
        ]
    assert arrived == list(range(8))  # none was lost, none overtook another
