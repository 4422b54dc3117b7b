"""SSH connections to boards: one OpenSSH master for each, which also forwards the node's control socket.

A master stays while the lab is up, and carries the lab's mark, so that `down` finds it. Commands use it without a new
handshake. The forwarded socket has the same path as the socket of a node on this machine.
"""

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from testbed.backends.field.boards import Board
from testbed.backends.field.deployment import BoardPaths
from testbed.errors import TestbedError
from testbed.places import LabPlace, marks

AT_ONCE = 32
OPEN_S = 20.0
COMMAND_S = 30.0
MASTER_S = 10.0
_PAUSE_S = 0.05
_OPTIONS = {
    "BatchMode": "yes",  # no terminal for questions
    "StrictHostKeyChecking": "yes",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "StreamLocalBindUnlink": "yes",
    "LogLevel": "ERROR",
}

Result = TypeVar("Result")


class BoardError(TestbedError):
    """A board is out of reach, or a command there has failed."""


class Connections:
    """The connections to the boards of one lab."""

    def __init__(self, lab: LabPlace, run: str) -> None:
        self._lab, self._run = lab, run
        self._board_paths = BoardPaths(lab.name)
        self.folder = lab.folder / "b"

    def open(self, boards: Sequence[Board]) -> dict[str, str]:
        """Open a master to each of these boards; return the reasons of failures by node."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return {
            board.node: reason
            for board, reason in zip(boards, for_each_board(self._open, boards), strict=True)
            if reason
        }

    def _open(self, board: Board) -> str:
        if self.alive(board):
            return ""
        local = self._lab.node_control(board.node)
        local.parent.mkdir(parents=True, exist_ok=True)
        self._socket(board).unlink(missing_ok=True)
        log = self._log(board)
        argv = [
            *self._ssh(board),
            *("-M", "-N", "-L", f"{local}:{self._board_paths.control}"),
            board.target,
        ]
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                env={**os.environ, **marks(self._lab, self._run, f"ssh:{board.node}")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + OPEN_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                return _last_line(log) or f"ssh ended with {process.returncode}"
            if self.alive(board):
                return ""
            time.sleep(_PAUSE_S)
        process.kill()
        process.wait()
        return f"no connection within {OPEN_S:.0f} s"

    def alive(self, board: Board) -> bool:
        """Whether the board's master answers."""
        if not self._socket(board).exists():
            return False
        return self._master(board, "check")

    def close(self, boards: Iterable[Board]) -> None:
        """End the masters."""
        for board in boards:
            if self._socket(board).exists():
                self._master(board, "exit")

    def _master(self, board: Board, order: str) -> bool:
        """Send a control command to a master; return whether it succeeded in time."""
        argv = [*self._ssh(board), "-O", order, board.target]
        try:
            done = subprocess.run(argv, capture_output=True, check=False, timeout=MASTER_S)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def command(
        self,
        board: Board,
        words: Sequence[str],
        *,
        given: bytes = b"",
        timeout_s: float = COMMAND_S,
        as_root: bool = False,
    ) -> bytes:
        """Run a command on the board and return its output; BoardError if it fails."""
        try:
            done = subprocess.run(
                self.argv(board, words, as_root=as_root),
                input=given,
                capture_output=True,
                check=False,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            raise BoardError(
                f"{board.host}: {words[0]} had not ended after {timeout_s:.0f} s"
            ) from None
        if done.returncode:
            errors = done.stderr.decode(errors="replace").strip().splitlines()
            reason = errors[-1] if errors else f"exit code {done.returncode}"
            raise BoardError(f"{board.host}: {reason}")
        return done.stdout

    def argv(self, board: Board, words: Sequence[str], *, as_root: bool = False) -> list[str]:
        """The local command that runs these words on the board, without interpretation by a shell."""
        raised = ["sudo", "-n", "--"] if as_root and board.user != "root" else []
        return [*self._ssh(board), board.target, shlex.join([*raised, *words])]

    def _ssh(self, board: Board) -> list[str]:
        options = [word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")]
        user = ["-l", board.user] if board.user else []
        key = ["-i", board.key, "-o", "IdentitiesOnly=yes"] if board.key else []
        own = shlex.split(board.ssh_options)
        return ["ssh", "-S", str(self._socket(board)), "-p", str(board.port), *options, *user, *key, *own]  # fmt: skip

    def _socket(self, board: Board) -> Path:
        return self.folder / board.node

    def _log(self, board: Board) -> Path:
        return self.folder / f"{board.node}.log"


def for_each_board(do: Callable[[Board], Result], boards: Sequence[Board]) -> list[Result]:
    """Call a function for many boards at once; the results are in the order of the boards."""
    if not boards:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(boards))) as pool:
        return list(pool.map(do, boards))


def failures_by_node(do: Callable[[Board], object], boards: Sequence[Board]) -> dict[str, str]:
    """Call a function for each board; return the reasons of failures by node."""

    def attempt(board: Board) -> str:
        try:
            do(board)
        except BoardError as error:
            return error.message
        return ""

    reasons: Mapping[str, str] = dict(
        zip((board.node for board in boards), for_each_board(attempt, boards), strict=True)
    )
    return {node: reason for node, reason in reasons.items() if reason}


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
