"""While a lab with boards is up, a process of its own keeps in touch with them (`watcher`): begun and ended here."""

import os
import subprocess
import sys

from testbed.keeper.processes import end_all, marked
from testbed.places import LabPlace, RunPlace, marks

ROLE = "boards-watch"


def begin(lab: LabPlace, run: RunPlace) -> None:
    """If none is there yet."""
    if any(process.role == ROLE for process in marked(lab)):
        return
    argv = [sys.executable, "-m", "testbed.backends.field.watcher", str(lab.folder), str(run.folder)]  # fmt: skip
    log = lab.folder / "boards" / "watcher.log"
    with log.open("ab") as words:
        subprocess.Popen(
            argv,
            env={**os.environ, **marks(lab, run.run, ROLE)},
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,
        )


def end(lab: LabPlace) -> None:
    """It and what it has started."""
    end_all(lambda: [process for process in marked(lab) if process.role == ROLE])
