"""The keeper's loop: one thread, a Unix socket, one question a line.

An answer that takes a while (to `fork`, which forks nodes) delays only questions that make or end nodes, links or
workers: signals, shapes and all other actions of a scenario are answered meanwhile.
"""

import inspect
import json
import os
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.core import Core
from testbed.keeper.prefork import DeferredAnswer, Wait

_ANSWER_S = 5.0  # a client that does not read its answer for so long is dropped
_LONGEST = 64 << 20
_AT_ANY_TIME = frozenset(
    {
        "status",
        "capabilities",
        "shape",
        "links",
        "signal",
        "partition",
        "heal",
        "load-expected",
        "load",
        "unload",
        "execute",
        "executed",
        "counters",
    }
)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A deferred answer, and what it waits for."""

    client: socket.socket
    answer: DeferredAnswer
    wait: Wait


class Server:
    """Answers questions until SIGTERM."""

    def __init__(self, listening: socket.socket, core: Core) -> None:
        self._core = core
        self._selector = selectors.DefaultSelector()
        self._ended = False
        self._unread: dict[socket.socket, bytes] = {}
        self._pending: _Pending | None = None
        # Questions that wait for the pending answer.
        self._deferred: deque[tuple[socket.socket, bytes]] = deque()
        self._listening = listening
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, self._accept)
        self._questions: dict[str, Callable[..., dict[str, Any] | DeferredAnswer]] = {
            "status": core.status,
            "capabilities": core.capabilities,
            "spawn": core.spawn,
            "forks-expected": core.forks_expected,
            "fork": core.fork,
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
            "partition": core.partition,
            "heal": core.heal,
            "end-scenario": core.end_scenario,
            "load-expected": core.load_expected,
            "load": core.load,
            "unload": core.unload,
            "execute": core.execute,
            "executed": core.executed,
        }

    def run(self) -> None:
        """Serve, then close the core and all connections."""
        self._listen_to_signals()
        try:
            while not self._ended:
                for key, _ in self._selector.select(self._time_left_s()):
                    key.data()
                if self._time_left_s() == 0.0:
                    self._resume()
        finally:
            if self._pending is not None:
                self._pending.answer.close()
            self._core.close()
            for client in list(self._unread):
                self._drop(client)
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

    def _accept(self) -> None:
        try:
            client, _ = self._listening.accept()
        except OSError:
            return  # the client has disconnected already
        client.settimeout(_ANSWER_S)
        self._unread[client] = b""
        self._selector.register(client, selectors.EVENT_READ, lambda: self._receive(client))

    def _receive(self, client: socket.socket) -> None:
        if client not in self._unread:
            return  # it was dropped a moment ago
        try:
            data = client.recv(1 << 20)
        except OSError:
            data = b""
        if not data or len(self._unread[client]) > _LONGEST:
            self._drop(client)
            return
        *lines, self._unread[client] = (self._unread[client] + data).split(b"\n")
        for line in lines:
            self._handle(client, line)

    def _handle(self, client: socket.socket, line: bytes) -> None:
        """Answer now, or after the pending answer; the questions of one client stay in order."""
        if self._pending is not None and not self._may_overtake(client, line):
            self._deferred.append((client, line))
            return
        answer = self._answer(line)
        if isinstance(answer, Generator):
            self._advance(client, answer)
        else:
            self._send(client, answer)

    def _may_overtake(self, client: socket.socket, line: bytes) -> bool:
        assert self._pending is not None
        if client is self._pending.client or any(client is other for other, _ in self._deferred):
            return False
        try:
            asked = json.loads(line)["do"]
            return asked in _AT_ANY_TIME or asked not in self._questions
        except (ValueError, KeyError, TypeError):
            return True  # it will be refused at once

    def _time_left_s(self) -> float | None:
        """Seconds until the deadline of the pending answer."""
        if self._pending is None:
            return None
        return max(0.0, self._pending.wait.deadline - time.monotonic())

    def _resume(self) -> None:
        """Go on with the pending answer: its data has arrived, or its deadline has passed."""
        assert self._pending is not None
        done, self._pending = self._pending, None
        self._selector.unregister(done.wait.fd)
        self._advance(done.client, done.answer)
        while self._deferred and self._pending is None:
            self._handle(*self._deferred.popleft())

    def _advance(self, client: socket.socket, answer: DeferredAnswer) -> None:
        """Run until the answer is complete, or has to wait again."""
        try:
            wait = next(answer)
        except StopIteration as end:
            self._send(client, {"ok": True, **end.value})
        except _ERRORS as error:
            self._send(client, _refusal(error))
        else:
            self._selector.register(wait.fd, selectors.EVENT_READ, self._resume)
            self._pending = _Pending(client, answer, wait)

    def _send(self, client: socket.socket, answer: dict[str, Any]) -> None:
        """Send the answer; skip clients that have disconnected."""
        if client not in self._unread:
            return
        try:
            client.sendall(json.dumps(answer).encode() + b"\n")
        except OSError:
            self._drop(client)

    def _drop(self, client: socket.socket) -> None:
        self._selector.unregister(client)
        del self._unread[client]
        client.close()

    def _answer(self, line: bytes) -> dict[str, Any] | DeferredAnswer:
        try:
            question = json.loads(line)
            answerer = self._questions[question.pop("do")]
            inspect.signature(answerer).bind(**question)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"ok": False, "error": f"not a question of the keeper's protocol: {error}"}
        try:
            answer = answerer(**question)
        except _ERRORS as error:
            return _refusal(error)
        return answer if isinstance(answer, Generator) else {"ok": True, **answer}


_ERRORS = (TestbedError, OSError, KeyError, TypeError, ValueError)


def _refusal(error: Exception) -> dict[str, Any]:
    if isinstance(error, TestbedError):
        hint = f"; {error.hint}" if error.hint else ""
        return {"ok": False, "error": f"{error.message}{hint}"}
    return {"ok": False, "error": f"{type(error).__name__}: {error}"}
