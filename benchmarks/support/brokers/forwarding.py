"""The cost of forwarding small messages in a broker, and the delay that it adds."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.support.brokers.mqtt_protocol import MqttExchange
from benchmarks.support.brokers.our_protocol import OurExchange
from benchmarks.support.brokers.pair import Exchange, Pair, Stuck
from benchmarks.support.delivery.contestant import MOSQUITTO
from benchmarks.support.process_usage import processor_s
from nodes.runtime.handshake import Identity
from testbed.control import ControlError, request
from testbed.errors import TestbedError
from testbed.keeper.client import environment

# One broker on the loopback, ours or mosquitto, as a process whose processor time is measured.


HOST, NAME, LAB, SECRET, NUMBER = "127.0.0.1", "broker", "forward", "benchmark", 1
START_S = 30.0
END_S = 10.0
LOOK_S = 0.02
CARD = Identity(NAME, NUMBER, LAB, SECRET.encode())
# No message is dropped however many are queued, and none waits for a fuller packet.
_MOSQUITTO = """\
listener {port} {host}
allow_anonymous true
set_tcp_nodelay true
max_inflight_messages 0
max_queued_messages 0
log_dest stderr
log_type error
"""


class Lone:
    """A running broker."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.pid = process.pid
        self.address = (HOST, port)


@contextmanager
def our_broker(folder: Path, method: str, delivery: str) -> Iterator[Lone]:
    """A broker of ours with this overlay method, alone in it, and this delivery method on its links."""
    folder.mkdir()
    port, control, file = _free_port(), folder / "ctl", folder / "node.json"
    config = {
        "lab": LAB,
        "run": "benchmark",
        "name": NAME,
        "number": NUMBER,
        "kind": "broker",
        "control": str(control),
        "log": str(folder / "log.jsonl"),
        "seed": 1,
        "overlay": {"method": method, "parameters": {}},
        "delivery": {"method": delivery, "parameters": {}},
        "deliveries": {},
        "listen": {"host": HOST, "port": port},
        "brokers": [],
        "seeds": [],
        "topics": [],
        "dimensions": 0,
        "secret": SECRET,
        "journal": None,
    }
    file.write_text(json.dumps(config))
    with _running([sys.executable, "-m", "nodes", str(file)], folder) as process:
        _until(lambda: _control_answers(control, "status"), process, folder)
        request(control, {"do": "go"})
        _until(lambda: _listens(port), process, folder)
        yield Lone(process, port)


@contextmanager
def mosquitto(folder: Path) -> Iterator[Lone]:
    """mosquitto, with the fastest settings."""
    folder.mkdir()
    port, settings = _free_port(), folder / "mosquitto.conf"
    settings.write_text(_MOSQUITTO.format(port=port, host=HOST))
    with _running([MOSQUITTO, "-c", str(settings)], folder) as process:
        _until(lambda: _listens(port), process, folder)
        yield Lone(process, port)


@contextmanager
def _running(argv: list[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env=environment()
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(true: Callable[[], bool], process: "subprocess.Popen[bytes]", folder: Path) -> None:
    end = time.monotonic() + START_S
    while not true():
        if process.poll() is not None or time.monotonic() > end:
            words = (folder / "stderr").read_text(errors="replace").strip().splitlines()[-1:]
            raise TestbedError(f"{process.args!r} did not start: {words}")
        time.sleep(LOOK_S)


def _control_answers(control: Path, do: str) -> bool:
    try:
        return bool(request(control, {"do": do}))
    except ControlError:
        return False


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1.0).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


PAYLOAD_BYTES = 100
WARM_UP_S = 0.5
ROUTINE, URGENT = 1, 5


@dataclass(frozen=True, slots=True)
class Way:
    """A broker with its settings, and the protocol to talk to it."""

    name: str
    start: Callable[[Path], AbstractContextManager[Lone]]
    talk: Callable[[Lone], AbstractContextManager[Exchange]]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What was measured."""

    name: str
    per_processor_s: float  # messages for each second of the broker's processor time
    per_s: float  # messages a second, by the clock
    delay_s: float  # of a single message, the median, from the publisher's write to the subscriber's read


def ours(name: str, method: str, delivery: str, level: int, custody: bool) -> Way:
    """A case with a broker of ours."""

    @contextmanager
    def talk(lone: Lone) -> Iterator[Exchange]:
        exchange = OurExchange(lone.address, CARD, delivery, level, custody, PAYLOAD_BYTES)
        try:
            yield exchange
        finally:
            exchange.close()

    return Way(name, lambda folder: our_broker(folder, method, delivery), talk)


def theirs(name: str, qos: int) -> Way:
    """A case with mosquitto."""

    @contextmanager
    def talk(lone: Lone) -> Iterator[Exchange]:
        exchange = MqttExchange(lone.address, qos, PAYLOAD_BYTES)
        try:
            yield exchange
        finally:
            exchange.close()

    return Way(name, mosquitto, talk)


def forwarded(way: Way, folder: Path, seconds: float, singles: int) -> Forwarded:
    """Send as fast as possible for this many seconds; then this many single messages."""
    with way.start(folder / way.name) as lone, way.talk(lone) as exchange:
        pair = Pair(exchange)
        try:
            pair.blast(WARM_UP_S)
            before = processor_s(lone.pid)
            count, took_s = pair.blast(seconds)
            spent_s = processor_s(lone.pid) - before
            delays = pair.delays(singles)
        except Stuck as stuck:
            raise TestbedError(f"{way.name}: {stuck}") from stuck
    return Forwarded(way.name, count / spent_s, count / took_s, median(delays))
