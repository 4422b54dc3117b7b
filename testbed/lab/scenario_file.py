"""A scenario from a file of its own, for a lab that is up already."""

import shutil
from dataclasses import replace
from pathlib import Path

from testbed.errors import InputError, few
from testbed.records import LabRecord, locked, read_manifest, update_manifest
from testbed.topology import load_text
from testbed.topology.model import Topology, from_json, to_json
from testbed.topology.numbering import keep_numbers

PATIENCE_S = 5.0  # for another command that changes the lab at the same moment


def take_scenario(record: LabRecord, file: Path) -> None:
    """From now on this is what `play` plays; checked against the lab as it is, and refused if that cannot be."""
    with locked(record.name, patience_s=PATIENCE_S):
        run = record.run_place
        manifest = read_manifest(run)
        lab = from_json(manifest["topology"])
        asked = keep_numbers(_read_again(record, file, lab), manifest["numbers"])
        _refuse_other_nodes(record, file, lab, asked)
        topology = replace(lab, scenario=asked.scenario, profiles=asked.profiles)
        shutil.copyfile(file, run.scenario)
        update_manifest(run, topology=to_json(topology), scenario_source=str(file.resolve()))


def _read_again(record: LabRecord, scenario: Path, lab: Topology) -> Topology:
    """The topology file as it was when the lab was made, with this scenario; what was set of the old one is over."""
    source = Path(record.source)
    text = record.run_place.topology.read_text(encoding="utf-8-sig")
    settings = [f"{path}={value}" for path, value in lab.overrides if not _of_scenario(path)]
    return load_text(
        text,
        str(source),
        name=record.name,
        folder=source.parent,
        scenario=scenario,
        overrides=settings,
    )


def _of_scenario(path: str) -> bool:
    return path == "scenario" or path.startswith("scenario.")


def _refuse_other_nodes(record: LabRecord, file: Path, lab: Topology, asked: Topology) -> None:
    """What subscribers want may follow from the scenario, and they have said already what they want."""
    now = {node.name: node for node in lab.nodes}
    wanted = {node.name: node for node in asked.nodes}
    others = [name for name in {**now, **wanted} if now.get(name) != wanted.get(name)]
    if others:
        raise InputError(
            f"with this scenario {few(others)} would not be as the lab has made them",
            f"`testbed up {record.source} --scenario {file}` brings the lab in line with it",
        )
