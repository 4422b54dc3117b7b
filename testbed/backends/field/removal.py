"""Clears boards: `playbooks/clean.yml` removes what a lab has put there, and nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.backends.field import playbooks
from testbed.backends.field.board_files import connection_variables, routes, write_inventory
from testbed.backends.field.boards import Uplink
from testbed.backends.field.collection import COLLECTED, COMPLETE, NOTHING, known_boards
from testbed.backends.field.deployment import NOT_YET, Deployed, Deployment, folder
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit, StageAdvanced, StageEnded, StageStarted

STAGE = "clearing boards"
CLEAN = "clean.yml"


def clear_boards(
    lab: LabPlace, run: RunPlace, deployment: Deployment, emit: Emit, *, discard: bool = False
) -> tuple[list[str], list[str]]:
    """Clear boards that were set up; return sentences on what was removed, and what was left and why.

    A board with data that was not collected is not cleared, unless `discard` is set.
    """
    there = Deployed(lab).all()
    boards = [board for board in deployment.boards if board.node in there]
    known = known_boards(run)
    states = {b.host: known.get(b.node, {}).get(COLLECTED, NOTHING) for b in boards}
    begun = {b.host for b in boards if there[b.node]["fingerprint"] != NOT_YET}
    uncollected = {
        host: state
        for host, state in states.items()
        if not discard and host in begun and state != COMPLETE
    }
    hosts = {b.host: connection_variables(b) for b in boards if b.host not in uncollected}
    own = write_inventory(folder(lab) / "clean-inventory.json", hosts)
    inventories = deployment.inventories(own)
    artifacts = run.folder / "ansible"
    removed, reasons = clean(
        lab.name, run.run, inventories, hosts, deployment.uplink, artifacts, emit
    )
    again = f"`testbed down {lab.name} -i {deployment.inventory}` clears it"
    left = [f"board {host} was not cleared ({why}); {again}" for host, why in reasons.items()]
    waiting = f"`testbed collect {run.run} -i {deployment.inventory}` collects it, then {again}"
    left += [
        f"board {host} still has what was not collected ({what} of it is here); {waiting}"
        for host, what in uncollected.items()
    ]
    return removed, left


def clean(
    lab: str,
    run: str,
    inventories: Sequence[Path],
    hosts: Mapping[str, Any],
    uplink: Uplink | None,
    artifacts: Path,
    emit: Emit,
) -> tuple[list[str], dict[str, str]]:
    """Remove the lab of this name from these hosts; return what was removed, and the reasons of failures.

    A board that holds another run than this one refuses; without a run, none does.
    """
    if not hosts:
        return [], {}
    emit(StageStarted(STAGE, len(hosts)))
    outcome = playbooks.play(
        CLEAN,
        inventories,
        [*hosts],
        {"testbed_lab": lab, "testbed_run": run, "testbed_routes": routes(uplink)},
        artifacts,
        lambda host, task: emit(StageAdvanced(STAGE, 0, f"{host}: {task}")),
    )
    for host in outcome.done:
        emit(StageAdvanced(STAGE, detail=host))
    emit(StageEnded(STAGE))
    removed = [f"lab {lab} from board {host}" for host in outcome.done if outcome.changed.get(host)]
    return removed, outcome.reasons
