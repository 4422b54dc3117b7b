"""Measures the offset of a board's clock from this machine's clock over SSH.

A question leaves at t0, and its answer, the board's time T, arrives at t1. T was read in between, so the offset is
T - (t0 + t1) / 2 with an error of at most (t1 - t0) / 2, also on asymmetric paths. The fastest exchange counts.
"""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from testbed.backends.field.boards import Board
from testbed.backends.field.connections import BoardError, Connections, for_each_board
from testbed.backends.field.deployment import BoardPaths
from testbed.places import RunPlace

QUESTIONS = 10
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One comparison: a line of clocks.jsonl."""

    t_ns: int  # this machine's time
    node: str
    offset_ns: int  # the board's clock less this machine's
    error_ns: int
    when: str  # before, during or after


def compared(node: str, when: str, asked: Sequence[tuple[int, int, int]]) -> Reading:
    """The offset by the fastest of these exchanges (left, the board's time, back), all in ns. Pure."""
    left, theirs, back = min(asked, key=lambda each: each[2] - each[0])
    middle = (left + back) // 2
    return Reading(middle, node, theirs - middle, (back - left + 1) // 2, when)


def read(
    connections: Connections,
    board: Board,
    board_paths: BoardPaths,
    when: str,
    now: Callable[[], int] = time.time_ns,
) -> Reading:
    """Ask a board several times; BoardError if it does not answer."""
    argv = connections.argv(board, ("python3", board_paths.nodes_pyz, "board", "clock"))
    asked = []
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for _ in range(QUESTIONS):
                left = now()
                process.stdin.write(b"\n")
                answer = process.stdout.readline()
                asked.append((left, int(answer), now()))
            process.stdin.close()
            process.wait(_PATIENCE_S)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            process.kill()
            raise BoardError(f"{board.host} does not report its time") from None
    return compared(board.node, when, asked)


def measure(
    connections: Connections,
    boards: Sequence[Board],
    board_paths: BoardPaths,
    run: RunPlace,
    when: str,
) -> list[Reading]:
    """Measure all boards at once, and write clocks.jsonl in the run's folder; skip boards that do not answer."""

    def attempt(board: Board) -> Reading | None:
        try:
            return read(connections, board, board_paths, when)
        except BoardError:
            return None

    readings = [reading for reading in for_each_board(attempt, boards) if reading is not None]
    with (run.folder / "clocks.jsonl").open("a") as file:
        file.writelines(json.dumps(asdict(reading)) + "\n" for reading in readings)
    return readings
