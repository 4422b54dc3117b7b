"""Applies the steps of a plan by calls of a backend; each batch is written to the journal first."""

from collections.abc import Callable, Sequence

from testbed.backends.common.base import Backend, Done
from testbed.errors import NodeFailure
from testbed.lab.journal import Journal
from testbed.plan import Step, StepKind, batches
from testbed.progress import Emit, StageAdvanced, StageEnded, StageStarted
from testbed.topology.model import Node, Topology

STAGES = {
    StepKind.REMOVE: "removing nodes",
    StepKind.PREPARE: "preparing the core",
    StepKind.CREATE: "creating nodes",
    StepKind.WIRE: "wiring links",
    StepKind.SHAPE: "shaping links",
    StepKind.CAPTURE: "starting captures",
    StepKind.START: "starting nodes",
}


def apply(
    steps: tuple[Step, ...],
    backend: Backend,
    topology: Topology,
    journal: Journal,
    emit: Emit,
) -> list[NodeFailure]:
    """Do the steps in order, and return the failures. Skip the further steps of a node that has failed."""
    failures: list[NodeFailure] = []
    for kind, batch in batches(steps):
        stage = STAGES[kind]
        failed = {name for failure in failures for name in failure.nodes}
        targets = [step.target for step in batch if step.target not in failed]
        if not targets:
            continue
        journal.write(step=kind, targets=targets)
        emit(StageStarted(stage, len(targets)))

        def done(name: str, stage: str = stage) -> None:
            emit(StageAdvanced(stage, detail=name))

        try:
            if kind is StepKind.PREPARE:
                backend.prepare(topology)
                done(topology.name)
            elif kind is StepKind.REMOVE:
                backend.remove(targets, done)
            else:
                _call(backend, kind)([topology.node(target) for target in targets], done)
        except NodeFailure as failure:
            failures.append(failure)
        emit(StageEnded(stage))
    return failures


def _call(backend: Backend, kind: StepKind) -> Callable[[Sequence[Node], Done], None]:
    calls: dict[StepKind, Callable[[Sequence[Node], Done], None]] = {
        StepKind.CREATE: backend.create,
        StepKind.WIRE: backend.wire,
        StepKind.SHAPE: backend.shape,
        StepKind.CAPTURE: backend.capture,
        StepKind.START: backend.start,
    }
    return calls[kind]
