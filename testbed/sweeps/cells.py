"""The cells of a sweep: each combination of values, with each seed. Pure: the same request gives the same cells."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from testbed.errors import InputError
from testbed.sweeps.axes import Axis
from testbed.topology.names import MAX_LAB_NAME

MOST_CELLS = 10_000
SEED = "seed"  # of the file: what trials differ in
NAME = "name"  # of the lab: each cell has its own


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: its number from 1, what is set, and the seed of its trial."""

    number: int
    settings: tuple[tuple[str, str], ...]  # path, value; in the order of the axes
    trial: int  # from 1
    seed: int

    @property
    def overrides(self) -> list[str]:
        """As `--set` has them."""
        return [*(f"{path}={value}" for path, value in self.settings), f"{SEED}={self.seed}"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Everything that decides what a sweep computes; two that are equal continue each other."""

    lab: str
    axes: tuple[Axis, ...]
    trials: int
    seed: int  # of the first trial
    backend: str | None
    digest: str  # of the files that it is about

    def cells(self) -> tuple[Cell, ...]:
        """All of them, the trials of a combination side by side."""
        combinations = product(
            *([(axis.path, value) for value in axis.values] for axis in self.axes)
        )
        each = (
            (settings, trial) for settings in combinations for trial in range(1, self.trials + 1)
        )
        return tuple(
            Cell(number, settings, trial, self.seed + trial - 1)
            for number, (settings, trial) in enumerate(each, start=1)
        )

    def name_of(self, cell: Cell) -> str:
        """Of the cell's lab: labs that are up at the same time, also of other sweeps, must not share one."""
        ending = f"-{self.identity}-c{cell.number}"
        return f"{self.lab[: MAX_LAB_NAME - len(ending)].rstrip('-')}{ending}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def identity(self) -> str:
        """Eight digits by which sweeps that continue each other know each other."""
        text = json.dumps(self.as_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def from_json(data: dict[str, Any]) -> Sweep:
    """The inverse of `as_json`, also after a trip through a file."""
    axes = tuple(Axis(axis["path"], tuple(axis["values"])) for axis in data["axes"])
    return Sweep(**{**data, "axes": axes})


def check_axes(axes: Sequence[Axis], trials: int) -> None:
    """InputError if they cannot be combined."""
    paths = [axis.path for axis in axes]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise InputError(f"--set: {twice} is set twice", "write all its values behind one --set")
    if SEED in paths:
        raise InputError(
            "--set seed: the seed is what trials differ in", "use --trials, or --seed for the first"
        )
    if NAME in paths:
        raise InputError("--set name: each cell's lab has a name of its own", "use --name")
    cells = trials
    for axis in axes:
        cells *= len(axis.values)
    if cells > MOST_CELLS:
        raise InputError(
            f"{cells:,} cells are too many", f"at most {MOST_CELLS:,}: fewer values or trials"
        )
