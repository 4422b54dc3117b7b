"""hazard.json of a run: what the scenario's hazard did, for the report."""

from testbed.hazards.record import record
from testbed.jsonfiles import write_json
from testbed.places import RunPlace
from testbed.scenario.hazard import hazard_stories
from testbed.topology.model import Topology


def record_hazard(run: RunPlace, topology: Topology) -> None:
    """Write it; a scenario without a hazard has none."""
    scenario = topology.scenario
    if scenario.hazard is None:
        run.hazard.unlink(missing_ok=True)
        return
    stories = hazard_stories(topology, scenario.hazard)
    write_json(run.hazard, record(scenario.hazard, stories, scenario.duration_s, scenario.speed))
