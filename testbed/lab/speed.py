"""Another speed for the scenario of a lab that is up already."""

from dataclasses import replace

from testbed.errors import InputError
from testbed.records import LabRecord, locked, read_manifest, update_manifest
from testbed.topology.model import from_json, to_json

PATIENCE_S = 5.0  # for another command that changes the lab at the same moment


def take_speed(record: LabRecord, speed: float) -> None:
    """From now on `play` plays the scenario so many times as fast as it is written."""
    with locked(record.name, patience_s=PATIENCE_S):
        topology = from_json(read_manifest(record.run_place)["topology"])
        if not topology.scenario.duration_s:
            raise InputError(f"lab {record.name} has no scenario to play faster", "add --scenario")
        paced = replace(topology, scenario=replace(topology.scenario, speed=speed))
        update_manifest(record.run_place, topology=to_json(paced))
