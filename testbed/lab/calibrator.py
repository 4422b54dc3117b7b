"""Talking to the process that measures links."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from testbed.errors import TestbedError
from testbed.keeper.client import environment
from testbed.links.namespaces import privileged
from testbed.pipes import Lines
from testbed.places import LabPlace, marks
from testbed.topology.model import Profile

PATIENCE_S = 60.0  # between two signs of life
END_S = 5.0
Result = dict[str, Any]


class CalibrationFailed(TestbedError):
    """Nothing could be measured."""


class Calibrator:
    """The measuring process; use as a context manager, which ends it with all it made."""

    def __init__(self, place: LabPlace, run: str, emulator: str) -> None:
        self._emulator = emulator
        log = place.keeper_socket.parent / "calibration.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        unprivileged = [] if privileged() else ["--unprivileged"]
        command = [sys.executable, "-m", "testbed.keeper.calibrating", str(place.folder), run]
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [*command, str(os.getpid()), *unprivileged],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env={**environment(), **marks(place, run, "calibration")},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """What it made goes with it. It may see to that itself, unless it is in the middle of something."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        if kind is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
        self._process.kill()
        self._process.wait()

    def ask(self, do: str, profiles: Sequence[Profile], **fields: Any) -> None:
        """Have it measure; it goes on by itself."""
        question = {
            "do": do,
            "emulator": self._emulator,
            "profiles": [asdict(profile) for profile in profiles],
            **fields,
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._gone() from error

    def results(
        self,
        told: Callable[[dict[str, Any]], None] = lambda _: None,
        patience_s: float = PATIENCE_S,
    ) -> list[Result]:
        """Wait for what was asked; `told` hears how far it is."""
        while True:
            words = json.loads(self._line(patience_s))
            if "ok" not in words:
                told(words)
                continue
            if not words["ok"]:
                raise CalibrationFailed(words["error"])
            results: list[Result] = words["results"]
            return results

    def _line(self, patience_s: float) -> bytes:
        try:
            return self._lines.next(time.monotonic() + patience_s)
        except TimeoutError:
            raise CalibrationFailed(
                f"no answer within {patience_s:.0f} s", f"see {self._log}"
            ) from None
        except EOFError:
            raise self._gone() from None

    def _gone(self) -> CalibrationFailed:
        return CalibrationFailed("the measuring process has ended", f"see {self._log}")
