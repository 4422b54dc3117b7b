"""`python -m testbed.backends.field.watcher LAB RUN`: watches a lab's boards until SIGTERM.

Every ten seconds it checks each board's connection and compares its clock. On desks, where SSH does not share the
measured link, it also copies the node's log line by line, so that triggers, `logs` and `events` can read it.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from testbed.backends.field import clocks
from testbed.backends.field.boards import Board
from testbed.backends.field.connections import Connections
from testbed.backends.field.deployment import BoardPaths, Deployed, load
from testbed.keeper.processes import end_all, marked
from testbed.places import LabPlace, RunPlace, marks

EVERY_S = 10.0
AGAIN_S = 2.0  # before an interrupted copy is started again


class Watcher:
    """The watcher of one lab."""

    def __init__(self, lab: LabPlace, run: RunPlace) -> None:
        self._run = run
        self._board_paths = BoardPaths(lab.name)
        self._lab = lab
        self._connections = Connections(lab, run.run)
        self._over = threading.Event()
        self._copies: dict[str, subprocess.Popen[bytes]] = {}

    def watch(self) -> None:
        """Watch until SIGTERM."""
        signal.signal(signal.SIGTERM, lambda *_: self._over.set())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        copied: set[str] = set()
        pause_s = 0.0
        while not self._over.wait(pause_s):
            boards = self._set_up()
            for board in boards:
                if board.shape and board.node not in copied:
                    copied.add(board.node)
                    threading.Thread(target=self._copy, args=(board,), daemon=True).start()
            if pause_s:
                self._connections.open(boards)
                clocks.measure(self._connections, boards, self._board_paths, self._run, "during")
            pause_s = EVERY_S
        for copy in [*self._copies.values()]:
            copy.terminate()

    def _set_up(self) -> list[Board]:
        """The boards that are set up now: a later `deploy` may add more."""
        there = Deployed(self._lab).all()
        return [board for board in load(self._lab).boards if board.node in there]

    def _copy(self, board: Board) -> None:
        """Copy the node's log, from where the copy ends."""
        target = self._run.log(board.node)
        while not self._over.is_set():
            have = target.stat().st_size if target.exists() else 0
            words = ("tail", "-c", f"+{have + 1}", "-F", self._board_paths.log)
            with target.open("ab") as file:
                argv = self._connections.argv(board, words, as_root=True)
                self._copies[board.node] = copy = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL
                )
                copy.wait()
            self._over.wait(AGAIN_S)


def main() -> None:
    """Run the watcher."""
    lab, run = (Path(argument) for argument in sys.argv[1:3])
    Watcher(LabPlace(lab), RunPlace(run)).watch()


if __name__ == "__main__":
    main()


# Starting and ending the watcher process of a lab.


ROLE = "boards-watch"


def begin(lab: LabPlace, run: RunPlace) -> None:
    """Start the watcher, unless it runs."""
    if any(process.role == ROLE for process in marked(lab)):
        return
    argv = [sys.executable, "-P", "-m", "testbed.backends.field.watcher", str(lab.folder), str(run.folder)]  # fmt: skip
    log = lab.folder / "boards" / "watcher.log"
    with log.open("ab") as output:
        subprocess.Popen(
            argv,
            env={**os.environ, **marks(lab, run.run, ROLE)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def end(lab: LabPlace) -> None:
    """End the watcher and its children."""
    end_all(lambda: [process for process in marked(lab) if process.role == ROLE])
