"""`testbed runs list|show|keep|rm|prune`: the folders of runs, what they take, and which of them go."""

import shlex
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from testbed.backends.common.names import SIMULATED, has_boards
from testbed.cli.commands.status import age
from testbed.cli.options import AsJson, RunName
from testbed.cli.terminal import Fitting, Terminal, what_is_missing
from testbed.errors import InputError, TestbedError
from testbed.jsonfiles import read_json
from testbed.lab.runs import (
    CAPTURES_REMOVED,
    Criteria,
    Entry,
    Kind,
    Selection,
    Verdicts,
    entries,
    living_runs,
    mark_kept,
    named_entry,
    read_entry,
    refuse_removal,
    remove_runs,
    select,
    sizes_by_part,
)
from testbed.lab.start.disk import free_bytes, size_text
from testbed.places import RunPlace, captures_root
from testbed.progress import Note
from testbed.records import find_run, read_manifest
from testbed.topology.units import DURATION, SIZE, Quantity, UnitError

AGE = replace(
    DURATION, name="an age", example="30d or 12h", units={**DURATION.units, "d": Decimal(86_400)}
)
LARGE = replace(
    SIZE,
    example="1GB or 500MB",
    units={**SIZE.units, "GB": Decimal("1e9"), "GiB": Decimal(1 << 30)},
)

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    runs = typer.Typer(
        help="List, show, keep and remove the folders of runs.",
        no_args_is_help=True,
        rich_markup_mode="rich",
    )
    runs.command("list", epilog="Example: testbed runs list --json")(list_runs)
    runs.command(epilog="Example: testbed runs show demo")(show)
    runs.command(epilog="Example: testbed runs keep demo-20261119-101500-a1b2")(keep)
    runs.command(epilog="Example: testbed runs rm demo-20261119-101500-a1b2")(rm)
    runs.command(epilog="Example: testbed runs prune --older-than 30d --keep-last 10 --dry-run")(
        prune
    )
    app.add_typer(runs, name="runs")


# List.


def list_runs(as_json: AsJson = False) -> None:
    """List runs and sweeps in captures/, the newest first, with status, age, size and result."""
    with Terminal(as_json) as terminal:
        root = captures_root()
        found, free = entries(root), free_bytes(root)
        now_ns = time.time_ns()
        total = sum(entry.size_bytes for entry in found)
        terminal.document(
            {
                "folder": str(root),
                "runs": [as_document(entry, now_ns) for entry in found],
                "total_bytes": total,
                "free_bytes": free,
            }
        )
        if not found:
            terminal.show(Text(f"there is no run in {root}; start one: testbed run FILE"))
            return
        terminal.show(runs_table(found, now_ns))
        terminal.show(Text(f"{size_text(total)} in {root}; {size_text(free)} are free"))


def as_document(entry: Entry, now_ns: int) -> dict[str, Any]:
    """One entry for programs."""
    created = entry.created_ns
    return {
        **asdict(entry),
        "name": shown(entry.name),
        "folder": shown(str(entry.folder)),
        "age_s": entry.age_s(now_ns) if created is not None else None,
    }


def shown(name: str) -> str:
    """A file's name as text: bytes that are none, and control characters, are written as escapes."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


_RIGHT = ("age", "nodes", "duration", "size")
_COLUMNS = (
    "run",
    "status",
    "age",
    "backend",
    "nodes",
    "duration",
    "size",
    "results",
    "expected",
    "",
)


def runs_table(found: Sequence[Entry], now_ns: int, title: str | None = None) -> Fitting:
    """A row for each run."""

    def make(left_out: Collection[str]) -> Table:
        columns = [name for name in _COLUMNS if name not in left_out]
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title)
        table.caption = what_is_missing(_COLUMNS, left_out)
        for name in columns:
            table.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=True)
        for entry in found:
            cells = _cells(entry, now_ns)
            table.add_row(*(Text(cells[name]) for name in columns))
        return table

    return Fitting(
        make, (("backend",), ("backend", "duration"), ("backend", "duration", "nodes", "expected"))
    )


def _cells(entry: Entry, now_ns: int) -> dict[str, str]:
    age_s = entry.age_s(now_ns)
    count = f"{entry.runs} runs" if entry.kind is Kind.SWEEP and entry.runs is not None else ""
    return {
        "run": shown(entry.name),
        "status": f"sweep, {entry.status}" if entry.kind is Kind.SWEEP else str(entry.status),
        "age": "" if age_s is None else age(age_s),
        "backend": shown(entry.backend or ""),
        "nodes": count if entry.nodes is None else str(entry.nodes),
        "duration": "" if entry.duration_s is None else f"{entry.duration_s:.0f} s",
        "size": size_text(entry.size_bytes),
        "results": _results(entry),
        "expected": _expected(entry.expectations),
        "": "kept" if entry.kept else "",
    }


def _results(entry: Entry) -> str:
    """What there is besides captures."""
    present = [
        ("metrics", entry.analyzed),
        ("report", entry.report),
        ("no captures", entry.captures_removed),
    ]
    return ", ".join(name for name, there in present if there)


def _expected(verdicts: Verdicts | None) -> str:
    if verdicts is None:
        return ""
    return f"{'met' if verdicts.met == verdicts.of else 'FAIL'} ({verdicts.met} of {verdicts.of})"


# Show.


def show(run: RunName = None, as_json: AsJson = False) -> None:
    """Show one run: its files, sizes, versions and fidelity, and the command that repeats it."""
    with Terminal(as_json) as terminal:
        place = find_run(run)
        manifest = read_manifest(place)
        entry = read_entry(place.folder.parent, place.folder.name, living_runs())
        now_ns = time.time_ns()
        sizes = sizes_by_part(place.folder)
        summary = read_json(place.folder / "summary.json")
        fidelity = summary.get("fidelity") if isinstance(summary, dict) else None
        document = {
            **as_document(entry, now_ns),
            "source": manifest.get("source"),
            "scenario_source": manifest.get("scenario_source"),
            "overrides": dict(manifest["topology"].get("overrides") or ()),
            "seed": manifest["topology"].get("seed"),
            "repeat": repeat_command(manifest, place),
            "sizes_bytes": sizes,
            "versions": manifest.get("versions") or {},
            "fidelity": fidelity,
            CAPTURES_REMOVED: manifest.get(CAPTURES_REMOVED),
        }
        terminal.document(document)
        terminal.show(_run_table(entry, document, now_ns))


def repeat_command(manifest: Mapping[str, Any], place: RunPlace) -> list[str]:
    """The command that makes such a run again: with the files that it was made from, else with the run's copies."""
    topology, backend = manifest["topology"], manifest["backend"]["name"]
    file = _unchanged(manifest.get("source"), place.topology)
    command = {SIMULATED: ["testbed", "simulate", file]}.get(backend, ["testbed", "run", file])
    if has_boards(backend):
        command = ["testbed", "deploy", file, "--inventory", "INVENTORY"]
    command += ["--name", manifest["lab"]]
    if place.scenario.is_file():
        command += ["--scenario", _unchanged(manifest.get("scenario_source"), place.scenario)]
    for path, value in topology.get("overrides") or ():
        command += ["--set", f"{path}={value}"]
    if has_boards(backend):
        return command
    command += ["--seed", str(topology["seed"])]
    return command if backend == SIMULATED else [*command, "--backend", backend]


def _unchanged(source: object, copy: Path) -> str:
    """The file itself if it is still as it was, because it may name further files; else its copy."""
    with suppress(OSError):
        if isinstance(source, str) and Path(source).read_bytes() == copy.read_bytes():
            return source
    return str(copy)


def _run_table(entry: Entry, document: Mapping[str, Any], now_ns: int) -> Table:
    table = Table(title=Text(f"run {shown(entry.name)}"), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")

    def row(name: str, value: object) -> None:
        if value not in (None, ""):
            table.add_row(name, Text(str(value)))

    row("status", f"{entry.status}{', kept' if entry.kept else ''}")
    row("made", _made(entry, now_ns))
    row("lab", f"{entry.lab}: {entry.nodes} nodes, {entry.backend}")
    row("scenario", None if entry.duration_s is None else f"{entry.duration_s:.1f} s, as played")
    row("file", document["source"])
    row("scenario's file", document["scenario_source"])
    row("repeat it", shlex.join(document["repeat"]))
    sizes = document["sizes_bytes"]
    row("size", size_text(entry.size_bytes))
    table.add_row("", Text("\n".join(f"{n} {size_text(s)}" for n, s in sizes.items() if s)))
    row("results", _results(entry) or "not analysed: testbed analyze " + entry.name)
    if removed := document[CAPTURES_REMOVED]:
        row("captures", f"removed ({size_text(removed['bytes'])}) by `testbed runs prune`")
    row("expectations", _expected(entry.expectations))
    row("fidelity", _fidelity(document["fidelity"]))
    row("versions", ", ".join(f"{name} {_short(v)}" for name, v in document["versions"].items()))
    return table


def _made(entry: Entry, now_ns: int) -> str:
    age_s = entry.age_s(now_ns)
    if entry.created_ns is None or age_s is None:
        return "unknown"
    moment = datetime.fromtimestamp(entry.created_ns / 1e9)
    return f"{moment:%Y-%m-%d %H:%M:%S} ({age(age_s)} ago)"


def _short(version: object) -> str:
    text = str(version)
    return text[:19] + "…" if text.startswith("sha256:") else text


def _fidelity(found: Any) -> str:
    if not isinstance(found, Mapping):
        return ""
    if found.get("ok"):
        return "the machine kept up"
    return "\n".join(str(each) for each in found.get("reasons") or ("not ok",))


# Keep, remove, prune.


def keep(
    names: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs or sweeps, by id or folder.")
    ],
    off: Annotated[bool, typer.Option("--off", help="Remove the mark.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mark runs to keep: `prune` never removes them, and `rm` only with --force."""
    with Terminal(as_json) as terminal:
        root = captures_root()
        found = [named_entry(root, name) for name in dict.fromkeys(names)]
        changed = [entry.name for entry in found if mark_kept(entry, kept=not off)]
        terminal.document({"kept": not off, "runs": [e.name for e in found], "changed": changed})
        for entry in found:
            terminal.show(Text(f"{shown(entry.name)} is {'no longer kept' if off else 'kept'}"))


def rm(
    names: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs or sweeps, by id or folder.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Also remove runs that are marked to keep.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove runs and sweeps with everything in their folders."""
    with Terminal(as_json) as terminal:
        root = captures_root()
        found = [named_entry(root, name) for name in names]
        chosen = [*{entry.name: entry for entry in found}.values()]
        for entry in chosen:
            refuse_removal(entry, force=force)
        terminal.show(runs_table(chosen, time.time_ns(), "what is removed"))
        _ask(f"remove {_counted(chosen)}, {size_text(sum(e.size_bytes for e in chosen))}?", yes)
        _remove(root, chosen, Criteria(), terminal, force=force)


def prune(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Only runs older than this, e.g. 30d or 12h."
        ),
    ] = None,
    keep_last: Annotated[
        int | None,
        typer.Option("--keep-last", metavar="N", min=0, help="Only runs other than the newest N."),
    ] = None,
    larger_than: Annotated[
        str | None,
        typer.Option("--larger-than", metavar="SIZE", help="Only runs larger than this, e.g. 1GB."),
    ] = None,
    captures_only: Annotated[
        bool,
        typer.Option(
            "--captures-only",
            help="Remove only the captures, and only of analyzed runs. Metrics and reports stay.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove the runs and sweeps that meet all conditions, except those that are marked to keep or in use."""
    with Terminal(as_json) as terminal:
        criteria = Criteria(
            _read(AGE, "--older-than", older_than),
            keep_last,
            _whole(_read(LARGE, "--larger-than", larger_than)),
            captures_only,
        )
        if criteria.empty:
            raise InputError(
                "`prune` takes at least one of --older-than, --keep-last, --larger-than",
                "testbed runs prune --older-than 30d --dry-run",
            )
        root, now_ns = captures_root(), time.time_ns()
        selection = select(entries(root), criteria, now_ns)
        chosen, freed = selection.chosen, selection.freed(criteria)
        if dry_run or not chosen:
            terminal.document(_pruned(selection, criteria, [], dry_run=dry_run))
        what = "captures of " if captures_only else ""
        for name, reason in selection.spared.items():
            terminal.emit(Note(f"{shown(name)} stays: {reason}"))
        if not chosen:
            terminal.show("no run meets the conditions; nothing is removed")
            return
        title = f"what would be removed: {what or 'all of '}{_counted(chosen)}, {size_text(freed)}"
        terminal.show(runs_table(chosen, now_ns, title))
        if dry_run:
            return
        _ask(f"remove {what}{_counted(chosen)}, {size_text(freed)}?", yes)
        _remove(root, chosen, criteria, terminal, selection=selection)


def _pruned(
    selection: Selection, criteria: Criteria, removed: Sequence[str], *, dry_run: bool
) -> dict[str, Any]:
    return {
        "chosen": [entry.name for entry in selection.chosen],
        "spared": dict(selection.spared),
        "removed": [*removed],
        "captures_only": criteria.captures_only,
        "freed_bytes": selection.freed(criteria) if dry_run else 0,
    }


def _remove(
    root: Path,
    chosen: Sequence[Entry],
    criteria: Criteria,
    terminal: Terminal,
    *,
    force: bool = False,
    selection: Selection | None = None,
) -> None:
    """Remove what was chosen; the document lists what is gone, also after an error or an interrupt."""
    document = _pruned(selection or Selection(tuple(chosen)), criteria, [], dry_run=False)
    terminal.so_far = document
    terminal.if_interrupted = "interrupted; repeat the command to remove the rest"

    def removed(entry: Entry) -> None:
        document["removed"].append(entry.name)
        size = entry.captures_bytes if criteria.captures_only else entry.size_bytes
        document["freed_bytes"] += size
        what = "the captures of " if criteria.captures_only else ""
        terminal.show(Text(f"removed {what}{shown(entry.name)} ({size_text(size)})"))

    names = [entry.name for entry in chosen]
    remove_runs(root, names, removed, force=force, captures_only=criteria.captures_only)
    terminal.document(document)


def _counted(chosen: Sequence[Entry]) -> str:
    sweeps = sum(entry.kind is Kind.SWEEP for entry in chosen)
    counts = ((len(chosen) - sweeps, "run"), (sweeps, "sweep"))
    return " and ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n)


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(
            "the command must ask, and there is no terminal", "--yes removes without asking"
        )
    if not typer.confirm(question, err=True):
        raise TestbedError("nothing was removed", "`testbed runs list` lists the runs")


def _read(quantity: Quantity, option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(quantity.read(text))
    except UnitError as error:
        raise InputError(f"{option}: {error}", error.hint) from error


def _whole(count: float | None) -> int | None:
    return None if count is None else round(count)
