"""The folder of a sweep: what it is about, the files as they were, a record of each cell that ended, and the runs.

sweep.json            what decides the cells; a sweep that is continued must be the same
topology.yaml         the file as it was (and scenario.yaml)
cells/<number>.json   one a cell that ended: its run, or why there is none
runs/<run>/           the run folders
dataset/, cells.parquet, points.parquet, result.json, report.html
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.errors import InputError
from testbed.jsonfiles import read_json, write_json
from testbed.sweeps.cells import Cell, Sweep, from_json
from testbed.topology.parse.files import text_of

FORMAT = 2


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """Paths, and what is known of the cells."""

    path: Path

    @property
    def sheet(self) -> Path:
        return self.path / "sweep.json"

    @property
    def topology(self) -> Path:
        return self.path / "topology.yaml"

    @property
    def scenario(self) -> Path:
        return self.path / "scenario.yaml"

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def log(self) -> Path:
        """The standard error of the processes that compute cells."""
        return self.path / "workers.log"

    def begin(self, sweep: Sweep, topology: str, scenario: str | None) -> None:
        """Make it, or find it as this sweep has left it; InputError if it is another's."""
        known = read_json(self.sheet)
        if known is None:
            self._refuse_strangers()
            for folder in (self.runs, self.path / "cells"):
                folder.mkdir(parents=True, exist_ok=True)
            self.topology.write_text(topology, encoding="utf-8")
            if scenario is not None:
                self.scenario.write_text(scenario, encoding="utf-8")
            write_json(self.sheet, {"format": FORMAT, "sweep": sweep.as_json()})
            return
        if known.get("format") != FORMAT:
            raise InputError(
                f"{self.sheet} has format {known.get('format')!r}; this version continues sweeps of format {FORMAT}",
                "name another folder with --to, or remove this one",
            )
        if from_json(known["sweep"]) != sweep:
            raise InputError(
                f"{self.path} holds another sweep: other values, trials, files or backend",
                "name another folder with --to, or remove this one",
            )

    def _refuse_a_file(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"--to {self.path} is a file", "name a folder")

    def _refuse_strangers(self) -> None:
        self._refuse_a_file()
        if self.path.is_dir() and any(self.path.iterdir()):
            raise InputError(
                f"{self.path} is not empty, and holds no sweep", "name another folder with --to"
            )

    @contextmanager
    def alone(self) -> Iterator[int]:
        """One command at a time works in it; InputError for the second.

        It yields the lock's descriptor: a process that inherits it holds the lock, too, until all have ended.
        """
        self._refuse_a_file()
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            self._lock(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another command is sweeping in {self.path}, or its last cells are ending",
                "wait for it, or name another --to",
            ) from None

    def record(self, cell: Cell, outcome: dict[str, Any]) -> None:
        """Record the outcome of the cell."""
        write_json(self._record(cell), {**asdict(cell), **outcome})

    def outcome(self, cell: Cell) -> dict[str, Any] | None:
        """The outcome of the cell; None if it is unknown, or its run is gone."""
        known = read_json(self._record(cell))
        if not isinstance(known, dict):
            return None
        gone = known.get("run") and not (self.runs / known["run"] / "run.json").is_file()
        return None if gone else known

    def _record(self, cell: Cell) -> Path:
        return self.path / "cells" / f"{cell.number}.json"

    def done(self, cells: Sequence[Cell]) -> dict[int, dict[str, Any]]:
        """Cells with a run; those that failed are tried again."""
        known = {cell.number: self.outcome(cell) for cell in cells}
        return {number: one for number, one in known.items() if one and one.get("run")}

    def clear_unfinished(self, cells: Sequence[Cell]) -> None:
        """Remove runs that no record names: the sweep was ended during their cells."""
        named = {one["run"] for one in self.done(cells).values()}
        for run in self.runs.iterdir() if self.runs.is_dir() else ():
            if run.name not in named:
                shutil.rmtree(run, ignore_errors=True)


# The texts that a sweep is about: all its cells must have been made from the same ones.


def digest_of(paths: Iterable[Path | None]) -> str:
    """The digest of these files' contents; None is no file."""
    texts = (text_of(path) for path in paths if path is not None)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
