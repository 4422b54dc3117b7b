"""Running commands of a benchmark: timed, checked, and ended with it."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from testbed.errors import TestbedError

LONGEST_S = 1800.0


def interrupt_once() -> None:
    """The first Ctrl-C or SIGTERM interrupts the benchmark; further ones do not disturb it while it clears up."""

    def interrupted(number: int, frame: FrameType | None) -> NoReturn:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupted)


def timed(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    codes: Sequence[int] = (0,),
) -> float:
    """Seconds that the command took; TestbedError with its last words if it failed."""
    began = time.monotonic()
    finished(argv, env, cwd, codes)
    return time.monotonic() - began


def finished(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path | None = None,
    codes: Sequence[int] = (0,),
) -> "subprocess.CompletedProcess[str]":
    """The command at its end; TestbedError with its last words if it failed."""
    done = subprocess.run(
        list(argv),
        env={**os.environ, **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        start_new_session=True,  # a Ctrl-C is for the benchmark, which then ends it
        check=False,
    )
    if done.returncode not in codes:
        words = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise TestbedError(f"`{' '.join(argv)}` ended with {done.returncode}: {words}")
    return done
