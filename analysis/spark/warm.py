"""Spark that another process keeps ready (`analysis.spark.warm_server`): find it, use it, start it, stop it.

Only its owner can connect to its socket. A command that uses it keeps a connection open, and learns where Java waits
for it and the secret that Java asks for.
"""

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from analysis.errors import AnalysisError
from analysis.spark import interrupts
from analysis.spark.detached import start_module

WARM = "unix:"  # begins the name of such a master; the path of the socket follows
USE, STATUS, STOP = "use", "status", "stop"  # what a client asks for
ANSWER_S = 20.0
START_S = 300.0  # on a busy machine
ENDING_S = 300.0  # also for a server that is being started
POLL_S = 0.05
# In the server's folder; at the last one the program beside Spark listens.
SOCKET, LOG, LOCK, SERVER, BESIDE = "ctl", "log", "lock", "server.json", "beside"
CODE = ("analysis", "nodes/protocol")  # what Spark's workers import of ours


def code_version() -> str:
    """Which code Spark's workers would run; another one if a file was changed."""
    root = Path(__file__).resolve().parents[2]
    seen = [sys.executable, str(root)]
    for folder in CODE:
        for path in sorted((root / folder).rglob("*.py")):
            seen.append(f"{path} {path.stat().st_mtime_ns}")
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:16]


class WarmSpark:
    """The client of a server in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def socket(self) -> Path:
        """Where the server listens."""
        return self.folder / SOCKET

    @property
    def master(self) -> str:
        """The master's name for `open_context`."""
        return f"{WARM}{self.socket}"

    @property
    def beside(self) -> Path:
        """Where the program that the server keeps ready beside Spark listens."""
        return self.folder / BESIDE

    def status(self) -> dict[str, Any] | None:
        """What the server says of itself; None if there is none."""
        if not self._is_ours():
            return None
        try:
            with _asked(self.socket, STATUS) as found:
                return found
        except OSError:
            return None

    def is_current(self) -> bool:
        """Whether there is a server, with the code that this process has."""
        found = self.status()
        return found is not None and found["code"] == code_version()

    def start(self, idle_s: float, *beside: str) -> dict[str, Any]:
        """Start a server, which ends when it was idle for so long; returns its status when it is ready.

        `beside`: a module that the server runs beside Spark, with the number of a listening socket as argument.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = self.folder / f"{LOG}-{os.getpid()}"
        pid = None
        try:
            with interrupts.deferred():
                arguments = (str(self.folder), str(idle_s), *beside)
                pid = start_module("analysis.spark.warm_server", *arguments, output=log)
            return self._when_ready(pid, log)
        except BaseException:  # also on an interrupt
            if pid is not None:
                with interrupts.deferred():
                    self._end_unfinished(pid)
            raise
        finally:
            log.unlink(missing_ok=True)

    def _when_ready(self, pid: int, log: Path) -> dict[str, Any]:
        """The status of the server that this process has started, or of one that another has started meanwhile."""
        limit = time.monotonic() + START_S
        while (found := self.status()) is None:
            ended = not Path(f"/proc/{pid}").exists()
            if time.monotonic() > limit or (ended and not self._is_locked()):
                if (found := self.status()) is not None:
                    break
                said = log.read_text(errors="replace").strip().splitlines()
                raise AnalysisError(f"Spark did not start: {' '.join(said[-3:])}", "")
            time.sleep(POLL_S)
        return found

    def _end_unfinished(self, pid: int) -> None:
        """End a server that does not listen yet, unless another one has the folder."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        limit = time.monotonic() + ENDING_S
        while Path(f"/proc/{pid}").exists() and time.monotonic() < limit:
            time.sleep(POLL_S)
        if not self._is_locked():
            self.stop()

    def _is_locked(self) -> bool:
        """Whether there is a server, which may not listen yet."""
        try:
            with (self.folder / LOCK).open("w") as lock:
                return not _locks(lock)
        except FileNotFoundError:
            return False

    def stop(self) -> bool:
        """End the server, and remove what a killed one has left; returns whether there was anything."""
        if not self._is_ours():
            return False
        with (self.folder / LOCK).open("w") as lock:
            limit = time.monotonic() + ENDING_S
            while not _locks(lock):  # until the server has ended
                with suppress(OSError), _asked(self.socket, STOP):
                    pass  # one that is being started listens later
                if time.monotonic() > limit:
                    raise AnalysisError(
                        f"The server in {self.folder} does not end.",
                        f"The number of its process is in {self.folder / SERVER}.",
                    )
                time.sleep(POLL_S)
            remove_leftovers(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        return True

    def _is_ours(self) -> bool:
        """Whether the folder is there, and only we can have put a socket into it."""
        try:
            about = self.folder.lstat()
        except OSError:
            return False
        private = not about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and private

    @staticmethod
    @contextmanager
    def use(path: Path) -> "Iterator[dict[str, str]]":
        """The variables by which pyspark uses this Spark; the server counts as used inside the block."""
        with ExitStack() as stack:
            try:
                found = stack.enter_context(_asked(path, USE))
            except OSError as error:
                raise AnalysisError(
                    f"No Spark is kept ready at {path}: {error.strerror or error}.",
                    "`testbed spark start` starts it.",
                ) from error
            yield {
                "PYSPARK_GATEWAY_PORT": str(found["port"]),
                "PYSPARK_GATEWAY_SECRET": str(found["secret"]),
                "PYSPARK_PYTHON": sys.executable,
            }


def remove_leftovers(folder: Path) -> None:
    """Remove what a server that was killed has left: its sockets, and its temporary folder."""
    for name in (SOCKET, BESIDE):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError, ValueError, KeyError):
        temporary = Path(json.loads((folder / SERVER).read_text())["temporary"])
        if temporary.name.startswith("testbed-spark-"):
            shutil.rmtree(temporary, ignore_errors=True)
    (folder / SERVER).unlink(missing_ok=True)


def _locks(lock: IO[str]) -> bool:
    """Whether the lock is free, and so taken now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _asked(path: Path, question: str) -> Iterator[dict[str, Any]]:
    """The answer to one question; the connection is open inside the block."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S)
        connection.connect(str(path))
        connection.sendall(question.encode() + b"\n")
        line = connection.makefile("rb").readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("it ended the connection")
        answer: dict[str, Any] = json.loads(line)
        yield answer
