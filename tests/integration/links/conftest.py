"""Labs of plain processes on real links, and sockets inside their namespaces (root only)."""

import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.keeper.client import Keeper, Program
from testbed.keeper.processes import end_marked, marked
from testbed.links.namespaces import inside
from testbed.links.spec import LinkSpec
from testbed.places import LabPlace
from testbed.topology.model import Emulator, Shape

SO_TIMESTAMPNS = 35
PORT = 5000
PATIENCE_S = 60.0
UDP_HEADERS = 14 + 20 + 8  # Ethernet, IPv4, UDP


@dataclass(frozen=True)
class Wired:
    """A running lab whose nodes do nothing by themselves."""

    place: LabPlace
    keeper: Keeper
    pids: dict[str, int]

    def socket(self, node: str, kind: int = socket.SOCK_DGRAM) -> socket.socket:
        """A socket inside the node's namespace; UDP ones are bound, with the kernel's time stamps."""
        namespace = os.open(f"/proc/{self.pids[node]}/ns/net", os.O_RDONLY)
        try:
            with inside(namespace):
                made = socket.socket(socket.AF_INET, kind)
        finally:
            os.close(namespace)
        made.settimeout(PATIENCE_S)
        if kind == socket.SOCK_DGRAM:
            made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            made.bind((address(node), PORT))
        return made

    def shape_all(self, up: Shape, down: Shape | None = None, seed: int = 1) -> None:
        self.keeper.shape(dict.fromkeys(self.pids, (up, down or up)), seed)


def address(node: str) -> str:
    """n7 has 10.77.0.7."""
    return f"10.77.0.{int(node[1:])}"


def link(node: str, mtu: int = 1500) -> LinkSpec:
    number = int(node[1:])
    return LinkSpec(
        node, number, address(node), 16, f"02:74:62:00:00:{number:02x}", mtu, f"testbed t r {node}"
    )


def receive_all(
    sock: socket.socket, quiet_s: float, count: int | None = None
) -> list[tuple[int, bytes]]:
    """(kernel's receive time in ns, payload) until this many packets came, or none comes for a while."""
    sock.settimeout(quiet_s)
    found: list[tuple[int, bytes]] = []
    while count is None or len(found) < count:
        try:
            data, ancillary, _, _ = sock.recvmsg(65536, 64)
        except TimeoutError:
            return found
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        found.append((seconds * 10**9 + nanoseconds, data))
    return found


def say_hello(wired: Wired, sender: str, receiver: str) -> None:
    """Send one packet each way."""
    with wired.socket(sender) as one, wired.socket(receiver) as other:
        one.sendto(b"hello", (address(receiver), PORT))
        assert other.recv(100) == b"hello"
        other.sendto(b"hello", (address(sender), PORT))
        assert one.recv(100) == b"hello"


def transfer(lab: Wired, sender: str, receiver: str, size: int) -> None:
    """Send this many bytes by TCP, and check that all of them arrive."""
    sent, received = os.urandom(size), bytearray()
    with (
        lab.socket(receiver, socket.SOCK_STREAM) as server,
        lab.socket(sender, socket.SOCK_STREAM) as client,
    ):
        server.bind((address(receiver), 80))
        server.listen()

        def send() -> None:
            client.connect((address(receiver), 80))
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        connection, _ = server.accept()
        connection.settimeout(PATIENCE_S)
        with connection:
            while part := connection.recv(1 << 16):
                received += part
        sending.join()
    assert bytes(received) == sent


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@contextmanager
def places_for_labs() -> Iterator[Callable[[], LabPlace]]:
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as folder:
        made: list[LabPlace] = []

        def place() -> LabPlace:
            made.append(LabPlace(Path(folder) / f"lab{len(made)}"))
            return made[-1]

        yield place
        for lab in made:
            end_marked(lab)
            assert marked(lab) == []


@pytest.fixture
def lab_places() -> Iterator[Callable[[], LabPlace]]:
    """lab_places(): a lab's place; processes that are left there at the end are ended."""
    with places_for_labs() as place:
        yield place


def wire(
    place: LabPlace,
    emulator: Emulator,
    nodes: Sequence[str],
    *,
    raised: bool = True,
    mtu: int | dict[str, int] = 1500,
    links: Sequence[str] | None = None,
) -> Wired:
    """A lab with these unshaped links (or only some of them)."""
    sizes = mtu if isinstance(mtu, dict) else dict.fromkeys(nodes, mtu)
    keeper = Keeper.launch(place, "run")
    programs = [
        Program(node, ("sleep", "600"), place.folder / f"{node}.stderr", {}) for node in nodes
    ]
    pids, failed = keeper.spawn(programs)
    assert failed == {}
    linked = nodes if links is None else links
    keeper.wire(emulator, [link(node, sizes[node]) for node in linked])
    if raised:
        keeper.capture(nodes, None)
    return Wired(place, keeper, pids)


@pytest.fixture
def wired(lab_places: Callable[[], LabPlace]) -> Callable[..., Wired]:
    """wired(emulator, nodes, raised=True): a lab of this test."""
    return lambda emulator, nodes, **options: wire(lab_places(), emulator, nodes, **options)


@pytest.fixture(scope="module")
def shared_wired() -> Iterator[Callable[..., Wired]]:
    """shared_wired(emulator, nodes): a lab for all tests of a module."""
    with places_for_labs() as place:
        yield lambda emulator, nodes, **options: wire(place(), emulator, nodes, **options)


@pytest.fixture
def tools() -> "Tools":
    """The helpers above (test folders are not packages, so tests cannot import them)."""
    return Tools()


class Tools:
    """Functions shared by the tests of links."""

    address = staticmethod(address)
    link = staticmethod(link)
    receive_all = staticmethod(receive_all)
    say_hello = staticmethod(say_hello)
    transfer = staticmethod(transfer)
    wait_for = staticmethod(wait_for)
    port = PORT
    patience_s = PATIENCE_S
    headers = UDP_HEADERS
