"""The folder of a run that begins: the file as it is, and a manifest that knows nothing yet of how it went."""

import shutil
import time
from pathlib import Path

from testbed import __version__
from testbed.backends.choice import Choice
from testbed.machine import machine_facts
from testbed.places import RunPlace
from testbed.records import FORMAT, make_run_folder, update_manifest
from testbed.topology.model import Topology, to_json
from testbed.topology.numbering import numbers_of


def begin_run(topology: Topology, source: Path, run: RunPlace, choice: Choice) -> None:
    """Make the folder, its copy of the file and its manifest."""
    make_run_folder(run)
    shutil.copyfile(source, run.topology)
    update_manifest(
        run,
        format=FORMAT,
        run=run.run,
        lab=topology.name,
        source=str(source.resolve()),
        status="starting",
        version=__version__,
        created_ns=time.time_ns(),
        backend={"name": choice.name, "reason": choice.reason},
        emulator=None,
        topology=to_json(topology),
        numbers=numbers_of(topology),
        measured_from_ns=0,
        capture=None,
        play=None,
        calibration=[],
        link_changes=[],
        faults=[],
        details={},
        machine=machine_facts(),
        warnings=[],
    )
