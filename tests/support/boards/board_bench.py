"""A stand-in for a board: a namespace with an `eth0`, and a neighbour at its other end with many addresses."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.links.namespaces import inside, make_network

BOARD, PEER, NON_PEER, FAR_PEER = "192.0.2.1", "192.0.2.11", "192.0.2.12", "10.77.3.4"
PORT = 7700
HEADERS = 14 + 20 + 8  # of a frame with UDP
SO_TIMESTAMPNS = 35
PATIENCE_S = 60.0
# A process sees the interfaces of its namespace in /sys only if that is mounted there.
_WITH_SYS = 'mount -t sysfs sysfs /sys && exec "$@"'


@dataclass(frozen=True, slots=True)
class Received:
    """The packets that arrived at the other end."""

    times: list[float]
    frame_bytes: int
    sent_s: float  # from the first sent packet to the last

    @property
    def rate_bps(self) -> float:
        """The rate over the time between the first and the last packet."""
        return 8 * self.frame_bytes * (len(self.times) - 1) / (self.times[-1] - self.times[0])


class Bench:
    """The namespace of the board and that of its neighbour."""

    def __init__(self, held: ExitStack, programs: Path) -> None:
        self.programs = programs
        self.board, self.neighbour = make_network(), make_network()
        held.callback(os.close, self.board)
        held.callback(os.close, self.neighbour)
        self.plug_in()

    def plug_in(self) -> None:
        """Make a new pair of interfaces between the two namespaces."""
        with inside(self.board):
            ip("link", "add", "eth0", "type", "veth", "peer", "name", "far")
            ip("link", "set", "far", "netns", f"/proc/{os.getpid()}/fd/{self.neighbour}")
            ip("address", "add", f"{BOARD}/24", "dev", "eth0")
            ip("link", "set", "eth0", "up")
            ip("route", "add", "10.77.0.0/16", "dev", "eth0")
        with inside(self.neighbour):
            for address in (PEER, NON_PEER, FAR_PEER):
                ip("address", "add", f"{address}/24", "dev", "far")
            ip("link", "set", "far", "up")
            ip("route", "add", f"{BOARD}/32", "dev", "far")
        for namespace, name in ((self.board, "eth0"), (self.neighbour, "far")):
            with inside(namespace):
                eventually(lambda: _carries(name))  # noqa: B023 - called at once

    def unplug(self) -> None:
        """Remove the interface, as when a user unplugs a USB network adapter."""
        with inside(self.board):
            ip("link", "del", "eth0")

    def command(self, *arguments: object) -> list[str]:
        """The command line that runs `arguments` in the board's namespace."""
        enter = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.board}", "unshare", "--mount"]
        return [*enter, "sh", "-c", _WITH_SYS, "sh", *map(str, arguments)]

    def run(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `nodes.pyz board ...` in the board's namespace until it has finished."""
        return subprocess.run(
            self.command(
                sys.executable,
                "-I",
                "-W",
                "error",
                self.programs / "nodes.pyz",
                "board",
                *arguments,
            ),
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def did(self, *arguments: object, **environment: str) -> Any:
        """The command's JSON answer; the test fails if the command fails."""
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    def state(self) -> dict[str, str]:
        """Everything in the namespace that shaping could have changed."""
        with inside(self.board):
            about = json.loads(_output("ip", "-json", "-details", "link", "show"))
            offloads = {name: _offloads(name) for name in ("eth0",) if _is_there(name)}
            return {
                "links": json.dumps(about),
                "disciplines": _output("tc", "qdisc", "show"),
                "filters": _output("tc", "filter", "show", "dev", "eth0", "ingress"),
                "offloads": json.dumps(offloads),
            }

    def tc(self, *arguments: str) -> None:
        """Run `tc` in the board's namespace, as another administrator might."""
        with inside(self.board):
            subprocess.run(["tc", *arguments], check=True)

    def ip(self, *arguments: str) -> None:
        with inside(self.board):
            ip(*arguments)

    def devices(self) -> list[str]:
        """The devices that shaping has created."""
        with inside(self.board):
            return [name for _, name in socket.if_nameindex() if name.startswith("tb")]

    @contextmanager
    def listening(self, direction: str, address: str, port: int = PORT) -> Iterator[list[float]]:
        """Record when each packet arrives at the end of this direction (`up`: at the neighbour's address).

        The times are the kernel's: they do not depend on when this process reads the packets.
        """
        where, bound = (self.neighbour, address) if direction == "up" else (self.board, BOARD)
        times: list[float] = []
        with inside(where):
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with receiver:
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            receiver.bind((bound, port))
            receiver.settimeout(0.1)
            ended = threading.Event()

            def receive() -> None:
                while True:
                    try:
                        _, ancillary, _, _ = receiver.recvmsg(2048, 64)
                    except TimeoutError:
                        if ended.is_set():
                            return
                        continue
                    seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
                    times.append(seconds + nanoseconds / 1e9)

            thread = threading.Thread(target=receive)
            thread.start()
            try:
                yield times
            finally:
                ended.set()
                thread.join()

    def send(
        self, direction: str, address: str, count: int, size: int = 1000, port: int = PORT,
        pause_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Send this many packets, up to this address or down from it, numbered from 0 on."""
        here = (self.board, BOARD) if direction == "up" else (self.neighbour, address)
        there = address if direction == "up" else BOARD
        with inside(here[0]):
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            sender.bind((here[1], 0))
            for number in range(count):
                sender.sendto(number.to_bytes(8, "big") + bytes(size - 8), (there, port))
                time.sleep(pause_s)

    def measure(
        self, direction: str, address: str, count: int = 60, size: int = 1000, wait_s: float = 0.6,
        at_least: int = 0,
    ) -> Received:  # fmt: skip
        """Send all packets at once; receive so many at least, and then until none has arrived for a while."""
        with self.listening(direction, address) as times:
            began = time.monotonic()
            self.send(direction, address, count, size)
            sent_s = time.monotonic() - began
            eventually(lambda: len(times) >= at_least)
            arrived, quiet_from = len(times), time.monotonic()
            while time.monotonic() < quiet_from + wait_s:
                if len(times) > arrived:
                    arrived, quiet_from = len(times), time.monotonic()
                time.sleep(0.05)
        return Received(times, size + HEADERS, sent_s)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def eventually(condition: Any, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _carries(name: str) -> bool:
    (about,) = json.loads(_output("ip", "-json", "link", "show", name))
    return bool(about["operstate"] == "UP" and about["qdisc"] != "noop")


def _is_there(name: str) -> bool:
    return name in [one for _, one in socket.if_nameindex()]


def _offloads(name: str) -> list[str]:
    from nodes.board.kernel import offloads_on

    return offloads_on(name)


def write_links(path: Path, **directions: Any) -> Path:
    """Write links.json for the board's interface, with the default peers unless others are given."""
    peers = directions.pop("peers", [PEER, "10.77.0.0/16"])
    path.write_text(json.dumps({"interface": "eth0", "peers": peers, **directions}))
    return path
