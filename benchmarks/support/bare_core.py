"""A lab's core without a lab: links and programs are put into it one by one."""

from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.keeper.client import Keeper
from testbed.keeper.processes import end_marked
from testbed.places import LabPlace


class BareCore:
    """Use as a context manager, which ends all that was put into it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._place = LabPlace(folder / "s" / name)

    def __enter__(self) -> Self:
        self._place.folder.mkdir(parents=True)
        self._keeper = Keeper.launch(self._place, "benchmark")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end_marked(self._place)
