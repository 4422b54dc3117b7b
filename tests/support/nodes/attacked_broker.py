"""A broker on the loopback under attack, while an honest sensor publishes to an honest subscriber."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect

from support.nodes.loopback_nodes import PATIENCE_S, Lab, RunningNode, introduce, received, until
from support.processor_wait import ProcessorWait

MIB = 1 << 20
SLOWEST_S = 5.0  # for one honest message; seen: 0.1 s without the secret, 0.3 s with it
PUBLICATIONS = 15
ATTACKER = ("127.0.0.2", 0)

Attack = Callable[[Lab, threading.Event], None]


def peak_bytes(node: RunningNode) -> int:
    """The largest memory that the process ever had (VmHWM, proc(5))."""
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def knock(lab: Lab) -> socket.socket:
    return socket.create_connection(("127.0.0.1", lab.port), PATIENCE_S, ATTACKER)


def connection_to(lab: Lab) -> ClientConnection:
    return connect(
        f"ws://127.0.0.1:{lab.port}/",
        proxy=None,
        compression=None,
        ping_interval=None,
        close_timeout=0.1,
        source_address=ATTACKER,
    )


@contextmanager
def connected_client(lab: Lab, name: str = "x1") -> Iterator[ClientConnection]:
    """Connect as a client that knows the secret, or has stolen it."""
    with connection_to(lab) as connection:
        introduce(connection, name)
        yield connection


def frame(data: bytes, opcode: Opcode = Opcode.BINARY, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def pour(connection: socket.socket, data: bytes, over: threading.Event) -> None:
    """Send without end, until the attack is over or the broker closes the connection."""
    connection.settimeout(0.2)
    while not over.is_set():
        try:
            connection.sendall(data)
        except TimeoutError:
            continue
        except OSError:
            return


def withstand(
    lab: Lab, attack: Attack, others: Sequence[Mapping[str, Any]] = (), **config: Any
) -> tuple[RunningNode, float]:
    """Attack a broker; return it, and how long the slowest honest message took (without waits for a processor).

    `others` are the brokers that it knows; the configuration applies to all nodes.
    """
    broker, sensor, subscriber = lab.trio(others, **config)
    over, failures = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            attack(lab, over)
        except BaseException as failure:  # noqa: BLE001 - asserted below
            failures.append(failure)

    attacker = threading.Thread(target=run)
    attacker.start()
    pids = [os.getpid(), *(node.process.pid for node in lab.nodes)]
    slowest = 0.0
    try:
        sent: list[str] = []
        for _ in range(PUBLICATIONS):
            began, waits = time.monotonic(), ProcessorWait(pids)
            sent.append(sensor.publish())
            until(lambda: received(subscriber)[-1:] == sent[-1:])
            slowest = max(slowest, time.monotonic() - began - waits.seconds())
            time.sleep(0.02)
        newcomer = lab.node("subscriber", "c2", topics=["alert"], **config).go().ready()
        sent.append(sensor.publish())
        until(lambda: received(newcomer) == sent[-1:])
        until(lambda: received(subscriber) == sent)
    finally:
        over.set()
        attacker.join(PATIENCE_S)
    assert not failures
    assert not attacker.is_alive()
    assert broker.process.poll() is None
    assert broker.complaints.read_text() == ""
    assert not {"s1", "c1", "c2"} - set(broker.ask("status")["peers"])
    return broker, slowest
