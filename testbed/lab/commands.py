"""Commands that a scenario runs inside nodes: begun when it is time, and on record with how they ended."""

from dataclasses import dataclass
from typing import Any

from testbed.backends.base import Backend, Ended
from testbed.places import RunPlace
from testbed.scenario import Incident
from testbed.topology.model import ActionKind, Topology


@dataclass(frozen=True, slots=True)
class Running:
    """One that has not been seen to end."""

    node: str
    output: str  # in the run's folder
    ended: Ended


class Commands:
    """Those of one scenario."""

    def __init__(self, run: RunPlace, topology: Topology) -> None:
        self._run = run
        self._topology = topology
        self._running: list[Running] = []
        self._begun = 0

    def begin(self, incident: Incident, backend: Backend) -> None:
        """In each of the nodes; what they write goes to files of the run."""
        self._run.outputs.mkdir(exist_ok=True)
        for name in incident.nodes:
            self._begun += 1
            output = self._run.outputs / f"{self._begun}-{name}.txt"
            ended = backend.execute(self._topology.node(name), incident.details["command"], output)
            self._running.append(Running(name, f"{output.parent.name}/{output.name}", ended))

    def ended(self, now_ns: int, *, over: bool = False) -> list[Incident]:
        """Marks on those that have ended since the last look; `over`: also on those that go on."""
        told = []
        for one in [*self._running]:
            code = one.ended()
            if code is None and not over:
                continue
            self._running.remove(one)
            how = "goes on" if code is None else f"ended with {code}"
            details = {"name": f"exec in {one.node} {how}", "node": one.node}
            more: dict[str, Any] = {"exit_code": code, "output": one.output}
            told.append(Incident(now_ns, ActionKind.MARK, (), {**details, **more}))
        return told

    def __bool__(self) -> bool:
        return bool(self._running)
