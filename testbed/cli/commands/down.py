"""`testbed down [LAB]`: take down one lab, all labs, or remove what no lab owns any more."""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.cli.masters import warm_spark
from testbed.cli.options import AsJson, Strict
from testbed.cli.terminal import Terminal
from testbed.errors import InputError, NoSuchRun, TestbedError
from testbed.lab.down import Ended, bring_all_down, bring_down
from testbed.places import state_root
from testbed.progress import Incomplete, Note
from testbed.records import find_run, lab_names

if TYPE_CHECKING:
    from testbed.lab.orphans import Cleared

EPILOG = "Example: testbed down demo; testbed down --all; testbed down --orphans"


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(down)


def down(
    name: Annotated[str | None, typer.Argument(metavar="LAB", help="The lab's name.")] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            envvar="TESTBED_DOWN_ALL",
            help="End all your labs, and remove the remains of crashed labs.",
        ),
    ] = False,
    orphans: Annotated[
        bool,
        typer.Option(
            "--orphans", help="Remove the remains of crashed labs that `status --orphans` lists."
        ),
    ] = False,
    boards: Annotated[
        Path | None,
        typer.Option(
            "--inventory",
            "-i",
            metavar="INVENTORY",
            help="Remove the lab from these boards, even if this machine has no record of it.",
        ),
    ] = None,
    discard: Annotated[
        bool,
        typer.Option("--discard", help="With -i: also delete files that have not been collected."),
    ] = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """End a lab and remove its processes, containers and links. The run folder with captures and logs stays."""
    with Terminal(as_json, strict) as terminal:
        if (name is not None) + every + orphans != 1:
            raise InputError(
                "`down` takes one of: a lab's name, --all, --orphans",
                "`testbed status` lists the labs, `testbed status --orphans` the remains of crashed labs",
            )
        if boards is not None and name is None:
            raise InputError("--inventory goes with a lab's name", "testbed down LAB -i INVENTORY")
        if name is not None:
            _down_one(name, terminal)
            if boards is not None:
                _clear(name, boards, terminal, discard=discard)
        elif every:
            _down_several(lab_names(), terminal, of_all_users=False)
        else:
            _down_several(_dead_labs(), terminal, of_all_users=True)


def _down_one(name: str, terminal: Terminal) -> None:
    terminal.if_interrupted = f"interrupted; `testbed down {name}` again ends the rest"
    record = bring_down(name, terminal.emit)
    terminal.document({"lab": name, "run_folder": record.run_folder if record else None})
    if record:
        terminal.show(f"lab {name} is down; captures and logs are in {record.run_folder}")


def _clear(name: str, inventory: Path, terminal: Terminal, *, discard: bool) -> None:
    """Clear boards that were not reachable when the lab ended; uncollected files stay, unless discarded."""
    from testbed.backends.field.board_files import write_inventory
    from testbed.backends.field.boards import uplink_of
    from testbed.backends.field.playbooks import read_hosts
    from testbed.backends.field.removal import clean

    hosts = read_hosts(inventory)
    kept = {} if discard else _uncollected(name, hosts)
    going = {host: each for host, each in hosts.items() if host not in kept}
    with tempfile.TemporaryDirectory(prefix="testbed-clean-") as folder:
        own = write_inventory(Path(folder) / "inventory.json", {host: {} for host in going})
        inventories = [inventory.resolve(), own]
        removed, left = clean(
            name, "", inventories, going, uplink_of(hosts), Path(folder), terminal.emit
        )
    terminal.show(*(f"removed: {sentence}" for sentence in removed))
    for host, why in {**left, **kept}.items():
        terminal.emit(Incomplete(f"board {host} was not cleared ({why})"))


def _uncollected(name: str, hosts: Iterable[str]) -> dict[str, str]:
    """Boards with files that are not, or may not be, in the newest run's folder; the reason, by host."""
    from testbed.backends.field.collection import COLLECTED, COMPLETE, NOTHING, known_boards

    try:
        run = find_run(name)
    except NoSuchRun:
        why = "no run of this lab is here; --discard clears it all the same"
        return dict.fromkeys(hosts, why)
    known = {each["host"]: each.get(COLLECTED, NOTHING) for each in known_boards(run).values()}
    why = f"not all of it is in {run.run}: `testbed collect {run.run} -i INVENTORY` first, or --discard"
    return {host: why for host in hosts if known.get(host, COMPLETE) != COMPLETE}


def _dead_labs() -> list[str]:
    from testbed.lab.orphans import OrphanKind, find_orphans

    found = find_orphans().orphans
    return [orphan.name for orphan in found if orphan.what is OrphanKind.LAB and orphan.removable]


def _down_several(names: Sequence[str], terminal: Terminal, *, of_all_users: bool) -> None:
    from testbed.lab.orphans import remove_orphans

    terminal.if_interrupted = "interrupted; the same command again ends the rest"
    ended = bring_all_down(names, terminal.emit)
    cleared = remove_orphans(None if of_all_users else state_root())
    if not of_all_users:
        cleared = _with_spark(cleared)
    document = {"labs": [asdict(lab) for lab in ended], **asdict(cleared)}
    for lab in ended:
        terminal.show(*_how_it_went(lab))
    terminal.show(*(f"removed: {sentence}" for sentence in cleared.removed))
    if not ended and not cleared.removed:
        terminal.emit(Note("there was nothing to take down"))
    failed = [lab for lab in ended if lab.error]
    if failed or cleared.left:
        terminal.so_far = document
        raise _failure(failed, cleared.left)
    for sentence in cleared.unseen:
        terminal.emit(Note(sentence))
    terminal.document(document)


def _with_spark(cleared: "Cleared") -> "Cleared":
    """End the Spark that was kept ready, too."""
    from analysis.errors import AnalysisError

    try:
        ended = warm_spark().stop()
    except AnalysisError as error:
        return replace(cleared, left=(*cleared.left, error.message))
    removed = ("Spark that was kept ready",) if ended else ()
    return replace(cleared, removed=(*cleared.removed, *removed))


def _how_it_went(lab: Ended) -> list[str]:
    if lab.error:
        return [f"lab {lab.lab} is NOT down: {lab.error}"]
    where = f"; captures and logs are in {lab.run_folder}" if lab.run_folder else ""
    return [f"lab {lab.lab} is down{where}"]


def _failure(failed: Sequence[Ended], left: Sequence[str]) -> TestbedError:
    sentences = [f"lab {lab.lab}: {lab.error}" for lab in failed] + list(left)
    hints = {lab.hint for lab in failed if lab.hint} or {"see the sentences above"}
    return TestbedError(f"not all is gone: {'; '.join(sentences)}", "; ".join(sorted(hints)))
