"""Labs of a paper: brought up, played, described for the analysis and taken down; also side by side."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from threading import Lock
from typing import Any

from testbed.errors import NameTaken
from testbed.lab.down import bring_down
from testbed.lab.play import play
from testbed.lab.up import bring_up
from testbed.progress import Emit, Event, Incomplete, Warned
from testbed.records import lab_names, update_manifest
from testbed.topology import load


@dataclass(frozen=True, slots=True)
class PaperLab:
    """A topology file as text, and what of the paper stands in its run's manifest."""

    name: str
    text: str
    sheet: dict[str, Any]
    overloaded: bool = False  # links get more than they can carry, on purpose


def refuse_those_that_are_up(names: Sequence[str]) -> None:
    """NameTaken if one of the labs is up already: another command started it."""
    if taken := sorted(set(names) & set(lab_names())):
        raise NameTaken(
            f"a lab named {taken[0]!r} is up already; `reproduce` starts a lab of its own",
            f"`testbed down {taken[0]}`",
        )


def run_lab(
    lab: PaperLab,
    folder: Path,
    backend: str,
    emit: Emit,
    interrupted: Callable[[], bool] = lambda: False,
) -> Path:
    """Its run folder, when all is captured and the lab is down; the topology file stays in the folder.

    `interrupted` is asked whenever something happens; KeyboardInterrupt if so. It is taken down all the same.
    """

    def forward(event: Event) -> None:
        if interrupted():
            raise KeyboardInterrupt
        emit(event)

    source = folder / f"{lab.name}.yaml"
    source.write_text(lab.text)
    topology = load(source)
    try:
        record = bring_up(topology, source, backend, forward)
        update_manifest(record.run_place, paper=lab.sheet)
        play(record, forward, overloaded=lab.overloaded)
    finally:
        if topology.name in lab_names():
            bring_down(topology.name, emit)
    return record.run_place.folder


Run = Callable[[PaperLab, Path, str, Emit, Callable[[], bool]], Path]  # as `run_lab`


def run_side_by_side(
    labs: Sequence[PaperLab], folder: Path, backend: str, emit: Emit, run: Run = run_lab
) -> list[Path]:
    """All at the same time, one thread each. If one fails, or the user interrupts, all are taken down.

    They do the same at the same time: only the stages of the first are shown.
    """
    stop, lock = Flag(), Lock()

    def voice(for_all: bool) -> Emit:
        def forward(event: Event) -> None:
            if for_all or isinstance(event, Warned | Incomplete):
                with lock:
                    emit(event)

        return forward

    with ThreadPoolExecutor(len(labs)) as threads:
        running = [
            threads.submit(run, lab, folder, backend, voice(place == 0), stop.is_set)
            for place, lab in enumerate(labs)
        ]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
    errors = [error for one in running if (error := one.exception()) is not None]
    # Those that were stopped because of another one have nothing to say.
    for error in sorted(errors, key=lambda error: isinstance(error, KeyboardInterrupt)):
        raise error
    return [one.result() for one in running]
