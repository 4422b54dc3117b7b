"""Keeps Spark ready for the commands of its owner: `python -m analysis.spark.warm_server FOLDER IDLE_S [MODULE]`.

It listens on a socket in the folder, which only the owner can enter. It ends when it is asked to, when nobody has used
it for IDLE_S seconds, on SIGTERM, and when its Java has ended. The process and its temporary files are gone then.
MODULE is a program that runs beside Spark until then: it gets the number of a listening socket, and ends when its
standard input does.
"""

import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from analysis.spark import interrupts
from analysis.spark.local_java import Bridge, LocalJava
from analysis.spark.progress import cancel_jobs
from analysis.spark.session import open_session
from analysis.spark.training import exercise
from analysis.spark.warm import (
    BESIDE,
    LOCK,
    SERVER,
    SOCKET,
    STATUS,
    STOP,
    USE,
    code_version,
    remove_leftovers,
)

LOOK_S = 0.5  # how often the server looks whether it has to end
LONGEST_QUESTION = 100  # bytes
BUSY = 75  # exit code: there is a server in this folder


@dataclass
class _Client:
    """A connection, and what it has said."""

    pid: int
    said: bytes = b""
    uses: bool = False


class Server:
    """The state of the server: its clients, and since when none of them uses Spark."""

    def __init__(
        self,
        java: LocalJava,
        bridge: Bridge,
        idle_s: float,
        code: str,
        cancel: Callable[[int], None],
        beside: int | None,
    ) -> None:
        """`code`: the version that Spark's workers have loaded; `cancel`: cancels the jobs of a process; `beside`:
        the process beside Spark."""
        self._java = java
        self._bridge = bridge
        self._idle_s = idle_s
        self._idle_since = time.monotonic()
        self._code = code
        self._cancel = cancel
        self._processes = [java.process.pid, os.getpid(), *([beside] if beside else [])]
        self._clients: dict[socket.socket, _Client] = {}
        self._selector = selectors.DefaultSelector()
        self._over = False

    def serve(self, listening: socket.socket) -> None:
        """Answer until it is time to end."""
        self._idle_since = time.monotonic()
        self._selector.register(listening, selectors.EVENT_READ)
        while not self._over and not self._is_idle() and self._java.process.poll() is None:
            for key, _ in self._selector.select(LOOK_S):
                if key.fileobj is listening:
                    self._accept(listening)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    self._read(key.fileobj)

    def _is_idle(self) -> bool:
        if self._used_by():
            self._idle_since = time.monotonic()
        return time.monotonic() - self._idle_since > self._idle_s

    def _used_by(self) -> int:
        return sum(client.uses for client in self._clients.values())

    def _accept(self, listening: socket.socket) -> None:
        connection, _ = listening.accept()
        connection.setblocking(False)
        self._clients[connection] = _Client(_pid_of(connection))
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        client = self._clients[connection]
        try:
            found = connection.recv(LONGEST_QUESTION)
        except OSError:
            found = b""
        client.said += found
        if not found or len(client.said) > LONGEST_QUESTION:
            self._forget(connection)
        elif client.said.endswith(b"\n"):
            question, client.said = client.said.decode(errors="replace").strip(), b""
            client.uses = question == USE
            self._over = self._over or question == STOP
            with suppress(OSError):
                connection.sendall(json.dumps(self._answer(question)).encode() + b"\n")

    def _forget(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        client = self._clients.pop(connection)
        connection.close()
        if client.uses:
            self._cancel(client.pid)  # a client that was killed could not

    def _answer(self, question: str) -> dict[str, Any]:
        if question == USE:
            return {"port": self._bridge.port, "secret": self._bridge.secret}
        if question in (STATUS, STOP):
            return self._status()
        return {"error": f"no such question: {question}"}

    def _status(self) -> dict[str, Any]:
        used_by = self._used_by()
        idle_s = 0.0 if used_by else time.monotonic() - self._idle_since
        return {
            "pid": os.getpid(),
            "java": self._java.process.pid,
            "java_version": self._java.archive.java.version,
            "code": self._code,
            "used_by": used_by,
            "memory_bytes": sum(map(_memory, self._processes)),
            "ends_in_s": None if used_by else max(0.0, self._idle_s - idle_s),
        }


def _pid_of(connection: socket.socket) -> int:
    """The process at the other end of a Unix socket."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[0])


def _memory(pid: int) -> int:
    """The resident memory of a process; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def run(folder: Path, idle_s: float, module: str | None = None) -> int:
    """Start Spark and serve; returns the exit code."""
    with (folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return BUSY
        remove_leftovers(folder)
        code = code_version()  # before the workers load it
        try:
            with LocalJava() as java, _beside(folder / BESIDE, module) as beside:
                java.start()
                document = {"pid": os.getpid(), "temporary": str(java.folder)}
                (folder / SERVER).write_text(json.dumps(document))
                with open_session(java=java) as spark:
                    exercise(spark)
                    cancel = partial(cancel_jobs, spark.sparkContext)
                    server = Server(java, java.bridge(), idle_s, code, cancel, beside)
                    _serve(folder / SOCKET, server)
        finally:
            with interrupts.deferred():
                remove_leftovers(folder)
    return 0


@contextmanager
def _beside(path: Path, module: str | None) -> Iterator[int | None]:
    """Run the module in the block, with a socket at this path; yields the number of its process."""
    if module is None:
        yield None
        return
    with _listening(path) as listening:
        with interrupts.deferred():
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(listening.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listening.fileno()],
                process_group=0,
            )
        try:
            yield process.pid
        finally:
            with interrupts.deferred():
                process.kill()
                process.communicate()


def _serve(path: Path, server: Server) -> None:
    with _listening(path) as listening:
        server.serve(listening)


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """A socket that is at this path when it answers, and until the end of the block."""
    with socket.socket(socket.AF_UNIX) as listening:
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        listening.bind(str(unfinished))
        unfinished.chmod(0o600)
        listening.listen()
        unfinished.replace(path)
        try:
            yield listening
        finally:
            path.unlink(missing_ok=True)


def main() -> int:
    """Serve until it is time to end."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(Path(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
