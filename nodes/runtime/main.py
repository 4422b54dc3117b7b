"""The command `python3 nodes.pyz <node.json>`: read the configuration, then run that node until SIGTERM."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import TYPE_CHECKING

from nodes.protocol.kinds import NodeKind
from nodes.runtime.config import ConfigError, NodeConfig, load
from nodes.runtime.log import Log
from nodes.runtime.tcp_info import use_congestion_control

if TYPE_CHECKING:
    from nodes.runtime.node import Node


# The WebSocket library imports these modules to read its own version and to look for a web proxy; no node does either.
# Each node would spend a fifth of its start and half a MiB of memory on them. They are loaded at their first use, that
# is, never.


UNUSED = frozenset({"importlib.metadata", "urllib.request"})


class _LazyFinder:
    """Finds these modules as usual, but puts off loading them."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in UNUSED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def load_unused_later() -> None:
    """To be called before the library is imported."""
    sys.meta_path.insert(0, _LazyFinder)


FAILED, WRONG_INPUT = 1, 2


def main(arguments: Sequence[str]) -> int:
    """Run the node; the exit code."""
    load_unused_later()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the orchestrator
    if len(arguments) != 1:
        return _fail("usage: python3 nodes.pyz node.json", WRONG_INPUT)
    try:
        config = load(arguments[0])
    except ConfigError as error:
        return _fail(str(error), WRONG_INPUT)
    if (problem := _refused(config.tcp)) is not None:
        return _fail(f"{config.name}: {problem}", FAILED)
    try:
        log = Log(config.log, config.name)
    except OSError as error:
        problem = f"{config.name}: cannot write its log {config.log}: {error.strerror}"
        return _fail(problem, FAILED)
    try:
        return asyncio.run(_run(config, log))
    finally:
        log.close()


def _refused(tcp: str | None) -> str | None:
    """Why this kernel does not let the node use that congestion control; None if it does."""
    if tcp is None:
        return None
    try:
        with socket.socket() as sock:
            use_congestion_control(sock, tcp)
    except OSError as error:
        return (
            f"this kernel refuses the TCP congestion control {tcp} ({error.strerror}); "
            f"`sudo modprobe tcp_{tcp}` loads it, and the sysctl "
            "net.ipv4.tcp_allowed_congestion_control allows it to everybody"
        )
    return None


async def _run(config: NodeConfig, log: Log) -> int:
    from nodes.runtime.control import ControlSocket
    from nodes.runtime.node import NodeFailed

    try:
        node = _make(config, log)
    except ValueError as error:
        return _fail(f"{config.name}: {error}", WRONG_INPUT)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, node.terminate)
    log.write("start", kind=config.kind, pid=os.getpid(), run=config.run)
    try:
        async with ControlSocket(config.control, node):
            await node.run_until_stopped()
    except NodeFailed as error:
        return _fail(f"{config.name}: {error}", FAILED)
    return 0


def _make(config: NodeConfig, log: Log) -> "Node":
    """The node of this kind; only its own modules are loaded (a broker needs no client, and a Pi has little memory)."""
    match config.kind:
        case NodeKind.BROKER:
            from nodes.runtime.broker import Broker

            return Broker(config, log)
        case NodeKind.SENSOR:
            from nodes.runtime.sensor import Sensor

            return Sensor(config, log)
        case NodeKind.SUBSCRIBER:
            from nodes.runtime.subscriber import Subscriber

            return Subscriber(config, log)
        case kind:
            raise AssertionError(f"the configuration let a {kind} pass")


def _fail(sentence: str, exit_code: int) -> int:
    sys.stderr.write(sentence + "\n")
    return exit_code
