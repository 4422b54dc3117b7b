"""The folder of a new run: copies of its files, and a manifest without results."""

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed import __version__
from testbed.backends.registry import Choice
from testbed.lab.start.provenance import TcpChoice, machine_facts, tcp_of_lab, versions
from testbed.places import RunPlace
from testbed.records import FORMAT, make_run_folder, update_manifest
from testbed.topology.addresses import numbers_of
from testbed.topology.model import Topology, to_json


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that a lab is made from."""

    topology: Path
    scenario: Path | None = None  # if it has a file of its own

    def copy_to(self, run: RunPlace) -> None:
        """Copy the files as they are now."""
        shutil.copyfile(self.topology, run.topology)
        if self.scenario is not None:
            shutil.copyfile(self.scenario, run.scenario)
        else:
            run.scenario.unlink(missing_ok=True)

    def resolved(self) -> dict[str, str | None]:
        """Their entries in the manifest."""
        scenario = None if self.scenario is None else str(self.scenario.resolve())
        return {"source": str(self.topology.resolve()), "scenario_source": scenario}


def begin_run(
    topology: Topology,
    sources: Sources,
    run: RunPlace,
    choice: Choice,
    tcp: TcpChoice | None = None,
) -> None:
    """Make the folder, its copies of the files and its manifest. `tcp`: default is what a lab here uses."""
    make_run_folder(run)
    sources.copy_to(run)
    update_manifest(
        run,
        format=FORMAT,
        run=run.run,
        lab=topology.name,
        **sources.resolved(),
        status="starting",
        version=__version__,
        versions=versions(),
        created_ns=time.time_ns(),
        backend={"name": choice.name, "reason": choice.reason},
        emulator=None,
        tcp=asdict(tcp or tcp_of_lab(topology)),
        topology=to_json(topology),
        numbers=numbers_of(topology),
        measured_from_ns=0,
        capture=None,
        play=None,
        calibration=[],
        link_changes=[],
        actions=[],
        details={},
        machine=machine_facts(),
        warnings=[],
    )
