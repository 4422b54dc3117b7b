"""Draws charts in a process of its own: specification of Vega-Lite in, SVG out.

The library that draws holds Python's lock while it loads, for half a second. A process of its own loads it while this
one still does other things: `load()` starts it early. It ends when its standard input does, so also if this process is
killed.

Each message on its pipes is its length (4 bytes) and its text. An answer begins with `=`, or with `!` if an error
message follows.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

LENGTH_BYTES = 4
DRAWN, FAILED = "=", "!"
LOCK = threading.Lock()  # one question at a time


@dataclass(frozen=True)
class Rows:
    """The rows of a chart; altair would copy a list of them, and each of its values, several times."""

    values: list[dict[str, Any]]


def _values(rows: object) -> list[dict[str, Any]]:
    assert isinstance(rows, Rows)
    return rows.values


def load() -> None:
    """Start the process that draws, unless it runs."""
    with LOCK:
        _process(os.getpid())


def number() -> int:
    """The number of the process that draws."""
    return _process(os.getpid()).pid


def draw(specification: dict[str, Any]) -> str:
    """The chart as SVG; ValueError if the specification is wrong."""
    with LOCK:
        process = _process(os.getpid())
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _write(process.stdin, json.dumps(specification, default=_values))
            answer = _read(process.stdout)
            if answer is None:
                raise RuntimeError(f"the process that draws charts ended: {process.wait()}")
        except (
            BaseException
        ):  # also on an interrupt: the next answer would be that to this question
            _process.cache_clear()
            _end(process)
            raise
    if answer.startswith(FAILED):
        raise ValueError(answer.removeprefix(FAILED))
    return answer.removeprefix(DRAWN)


@cache
def _process(_owner: int) -> "subprocess.Popen[bytes]":
    """The process that draws for the process of this number; a forked one has its own."""
    ours = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-m", "analysis.report.drawing"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        process_group=0,  # Ctrl-C is for this process, at whose end the other one ends
    )
    atexit.register(_end, process)
    return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()  # closing its input is not enough if a forked process has it open, too
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()


def _write(pipe: IO[bytes], text: str) -> None:
    content = text.encode()
    pipe.write(len(content).to_bytes(LENGTH_BYTES) + content)
    pipe.flush()


def _read(pipe: IO[bytes]) -> str | None:
    """The next message; None if the pipe has ended."""
    length = pipe.read(LENGTH_BYTES)
    if len(length) < LENGTH_BYTES:
        return None
    content = pipe.read(int.from_bytes(length))
    return content.decode() if len(content) == int.from_bytes(length) else None


def main() -> None:
    """Draw what standard input asks for, until it ends."""
    import vl_convert

    vl_convert.vegalite_to_svg({"data": {"values": []}, "mark": "point"})  # loads all
    while (question := _read(sys.stdin.buffer)) is not None:
        try:
            answer = DRAWN + vl_convert.vegalite_to_svg(question)
        except ValueError as error:
            answer = f"{FAILED}{error}"
        _write(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()
