"""The keeper's loop: one thread, a Unix socket, a question a line."""

import inspect
import json
import os
import selectors
import signal
import socket
from collections.abc import Callable
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.core import Core

_ANSWER_S = 5.0  # a client that does not read its answer for so long is dropped
_LONGEST = 64 << 20


class Server:
    """Answers until SIGTERM."""

    def __init__(self, listening: socket.socket, core: Core) -> None:
        self._core = core
        self._selector = selectors.DefaultSelector()
        self._ended = False
        self._unread: dict[socket.socket, bytes] = {}
        self._listening = listening
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, self._welcome)
        self._questions: dict[str, Callable[..., dict[str, Any]]] = {
            "status": core.status,
            "capabilities": core.capabilities,
            "spawn": core.spawn,
            "bear": core.bear,
            "adopt": core.adopt,
            "routers": core.routers,
            "wire": core.wire,
            "shape": core.shape,
            "links": core.links,
            "capture": core.capture,
            "capture-expected": core.capture_expected,
            "capture-stop": core.capture_stop,
            "signal": core.signal,
            "unwire": core.unwire,
            "counters": core.counters,
            "part": core.part,
            "reunite": core.reunite,
            "calm": core.calm,
            "load-expected": core.load_expected,
            "load": core.load,
            "unload": core.unload,
            "execute": core.execute,
            "executed": core.executed,
        }

    def run(self) -> None:
        """Serve, then end everything that the core keeps."""
        self._listen_to_signals()
        try:
            while not self._ended:
                for key, _ in self._selector.select():
                    key.data()
        finally:
            self._core.close()
            for client in list(self._unread):
                self._leave(client)
            self._selector.close()

    def _listen_to_signals(self) -> None:
        readable, writable = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: None)

        def woken() -> None:
            if signal.SIGTERM in os.read(readable, 4096):
                self._ended = True
            self._core.reap()

        self._selector.register(readable, selectors.EVENT_READ, woken)

    def _welcome(self) -> None:
        try:
            client, _ = self._listening.accept()
        except OSError:
            return  # it left before we came
        client.settimeout(_ANSWER_S)
        self._unread[client] = b""
        self._selector.register(client, selectors.EVENT_READ, lambda: self._hear(client))

    def _hear(self, client: socket.socket) -> None:
        try:
            heard = client.recv(1 << 20)
            if not heard or len(self._unread[client]) > _LONGEST:
                self._leave(client)
                return
            *lines, self._unread[client] = (self._unread[client] + heard).split(b"\n")
            for line in lines:
                client.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        except OSError:
            self._leave(client)

    def _leave(self, client: socket.socket) -> None:
        self._selector.unregister(client)
        del self._unread[client]
        client.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            question = json.loads(line)
            answerer = self._questions[question.pop("do")]
            inspect.signature(answerer).bind(**question)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"ok": False, "error": f"not a question of the keeper's protocol: {error}"}
        try:
            return {"ok": True, **answerer(**question)}
        except TestbedError as error:
            hint = f"; {error.hint}" if error.hint else ""
            return {"ok": False, "error": f"{error.message}{hint}"}
        except (OSError, KeyError, TypeError, ValueError) as error:
            return {"ok": False, "error": f"{type(error).__name__}: {error}"}
