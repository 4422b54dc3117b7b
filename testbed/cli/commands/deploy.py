"""`testbed deploy`, `collect` and `inventory`: labs with nodes on boards."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from testbed.backends.field.deployment import Deployed, Deployment
from testbed.cli.options import (
    AsJson,
    BackendName,
    NewName,
    Overrides,
    ScenarioFile,
    Strict,
    TopologyFile,
)
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, NodeFailure
from testbed.lab.deploy import chosen_boards, deploy, plan_deployment
from testbed.lab.down import NOT_COMPLETE
from testbed.lab.links import PATIENCE_S
from testbed.lab.status import lab_status
from testbed.places import LabPlace, RunPlace
from testbed.progress import Incomplete, StageEnded, StageStarted
from testbed.records import (
    find_lab,
    find_run,
    lab_names,
    load_lab,
    locked,
    read_manifest,
    update_manifest,
)
from testbed.topology import load
from testbed.topology.model import Topology

Inventory = Annotated[
    Path,
    typer.Option(
        "--inventory",
        "-i",
        metavar="INVENTORY",
        help="An Ansible inventory. `testbed inventory` writes a template.",
    ),
]
OptionalInventory = Annotated[
    Path | None,
    typer.Option(
        "--inventory",
        "-i",
        metavar="INVENTORY",
        help="Inventory with the boards' addresses; required if the lab has ended.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("deploy", epilog="Example: testbed deploy valley.yaml -i inventory.yml --check")(
        deploy_lab
    )
    app.command(epilog="Example: testbed collect valley")(collect)
    app.command(
        epilog="Example: testbed inventory valley.yaml --address 192.168.1.11 --address 192.168.1.12 > inventory.yml"
    )(inventory)


def deploy_lab(
    file: TopologyFile,
    boards: Inventory,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only show what would change on each board; change nothing."),
    ] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="BOARD", help="Only this board (node or host). Repeatable."),
    ] = None,
    name: NewName = None,
    scenario: ScenarioFile = None,
    overrides: Overrides = None,
    backend: BackendName = None,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Install the nodes with `place: boards` on Raspberry Pis, start the others here, and connect all of them."""
    with Terminal(as_json, strict) as terminal:
        terminal.if_interrupted = "interrupted; this command removed what it had created"
        topology = load(file, name=name, scenario=scenario, overrides=overrides or ())
        deployment = plan_deployment(topology, boards)
        if check:
            _check(topology, deployment, limit or (), terminal)
            return
        record = deploy(
            topology,
            file,
            deployment,
            terminal.emit,
            backend=backend,
            scenario=scenario,
            only=limit or (),
        )
        terminal.document(asdict(lab_status(record.name)))
        terminal.show(
            f"lab {record.name} is up: {len(deployment.boards)} of {len(topology.nodes)} nodes on boards; "
            f"captures and logs go to {record.run_folder}",
            f"next: testbed play {record.name}, testbed status {record.name}, testbed down {record.name}",
        )


def _check(
    topology: Topology,
    deployment: Deployment,
    limit: list[str] | tuple[str, ...],
    terminal: Terminal,
) -> None:
    """Check the boards with a temporary state folder."""
    from testbed.backends.field.boards import at_their_addresses
    from testbed.backends.field.connections import Connections
    from testbed.backends.field.provisioning import BoardSetup

    meant = chosen_boards(deployment, limit)
    stage = "asking boards"
    with tempfile.TemporaryDirectory(prefix="testbed-check-") as folder:
        lab, run = LabPlace(Path(folder) / topology.name), RunPlace(Path(folder) / "run")
        lab.folder.mkdir()
        there = LabPlace.of(topology.name)
        if (known := load_lab(there)) is not None and there.secret.exists():
            run = RunPlace(Path(folder) / known.run)
            lab.secret.write_bytes(there.secret.read_bytes())
        run.folder.mkdir()
        deployment.save(lab)
        placed = at_their_addresses(topology, deployment.boards)
        connections = Connections(lab, run.run)
        terminal.emit(StageStarted(stage, len(meant)))
        try:
            setting_up = BoardSetup(lab, run, placed, deployment, connections, terminal.emit)
            changes, failed = setting_up.check(meant)
        finally:
            connections.close(meant)
        terminal.emit(StageEnded(stage))
    document = {"lab": topology.name, "would_change": changes, "failed": failed}
    table = Table("board", "node", "would change", title="what `deploy` would do")
    for board in meant:
        outcome = failed.get(board.node) or f"{changes[board.node]} tasks"
        table.add_row(board.host, board.node, outcome)
    terminal.show(table)
    if failed:
        terminal.so_far = document
        first, why = next(iter(failed.items()))
        raise NodeFailure(
            f"{len(failed)} of {len(meant)} boards cannot be set up ({first}: {why})",
            "repair these boards, or exclude them with --limit",
            failed,
        )
    terminal.document(document)


def collect(
    name: Annotated[
        str | None, typer.Argument(metavar="LAB|RUN", help="A lab that is up, or a run.")
    ] = None,
    boards: OptionalInventory = None,
    as_json: AsJson = False,
) -> None:
    """Copy captures and logs from the boards into the run's folder. Files that are complete there are skipped."""
    from testbed.backends.field import collection
    from testbed.backends.field.connections import Connections
    from testbed.backends.field.deployment import load as known_deployment

    with Terminal(as_json) as terminal:
        if name in lab_names() or (name is None and lab_names()):
            record = find_lab(name)
            place, run = LabPlace.of(record.name), record.run_place
            with locked(record.name, patience_s=PATIENCE_S):
                deployment = known_deployment(place)
                counts, missing = collection.collect(
                    Connections(place, run.run), deployment, place, run, terminal.emit, stop=False
                )
        else:
            run = find_run(name)
            counts, missing = _collect_later(run, boards, terminal)
        known = collection.known_boards(run)
        terminal.document({"run": run.run, "packets": counts, "boards": known})
        table = Table("board", "node", "here", "packets", "what is missing")
        for node, board in known.items():
            packets = str(counts.get(node, {}).get("packets", ""))
            table.add_row(board["host"], node, board["collected"], packets, board["missing"])
        terminal.show(table)
        if missing:
            terminal.emit(Incomplete(missing))


def _collect_later(
    run: RunPlace, inventory: Path | None, terminal: Terminal
) -> tuple[dict[str, dict[str, int]], str]:
    """Collect after the lab has ended: boards that were not reachable may be back."""
    from testbed.backends.field import collection
    from testbed.backends.field.connections import Connections
    from testbed.lab.run_record import record_publications
    from testbed.topology.model import from_json

    if inventory is None:
        raise InputError(
            f"the lab of run {run.run} has ended, and the addresses of its boards are no longer recorded",
            f"name an inventory: testbed collect {run.run} -i INVENTORY",
        )
    manifest = read_manifest(run)
    if load_lab(LabPlace.of(manifest["lab"])) is not None:
        raise InputError(
            f"a lab named {manifest['lab']} is up and may use the same boards",
            f"end it first: `testbed down {manifest['lab']}`",
        )
    deployment = plan_deployment(from_json(manifest["topology"]), inventory)
    with tempfile.TemporaryDirectory(prefix="testbed-collect-") as folder:
        lab = LabPlace(Path(folder) / manifest["lab"])
        lab.folder.mkdir()
        deployment.save(lab)
        for node in collection.known_boards(run):
            Deployed(lab).note(node, "in an earlier run", None)
        connections = Connections(lab, run.run)
        try:
            counts, missing = collection.collect(
                connections, deployment, lab, run, terminal.emit, stop=True
            )
        finally:
            connections.close(deployment.boards)
    others = [text for text in manifest["warnings"] if not text.startswith(NOT_COMPLETE)]
    still = [f"{NOT_COMPLETE}: {missing}"] if missing else []
    capture = {**(manifest["capture"] or {}), **counts}
    update_manifest(run, capture=capture, warnings=[*others, *still])
    record_publications(run)
    return counts, missing


def inventory(
    file: TopologyFile,
    address: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address of a board, in the order of the boards. Repeatable.",
        ),
    ] = None,
    user: Annotated[str, typer.Option(help="The user for SSH on the boards.")] = "pi",
    name: NewName = None,
    overrides: Overrides = None,
) -> None:
    """Write an inventory template for the nodes with `place: boards` of a topology."""
    from testbed.backends.field.boards import sample_inventory

    with Terminal():
        topology = load(file, name=name, overrides=overrides or ())
        typer.echo(sample_inventory(topology, file.name, address or (), user), nl=False)
