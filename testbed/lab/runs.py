"""The folders in captures/: lists runs and sweeps, marks those to keep, and removes others.

A folder is removed only if it lies directly in the captures folder, is no symbolic link, and its run.json (or
sweep.json) is one of ours. It is renamed into `.testbed-removed` first, so that an interrupt leaves no half of a run
that looks like a whole one; the next removal completes what an interrupt left.
"""

import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from testbed.backends.common.names import SIMULATED
from testbed.errors import InputError, NoSuchRun, TestbedError
from testbed.keeper.processes import all_marked
from testbed.places import LabPlace, RunPlace
from testbed.records import (
    UNFINISHED,
    did_you_mean,
    is_being_written,
    lab_names,
    load_lab,
    lock_is_held,
    update_manifest,
)

REMOVED = ".testbed-removed"  # in the captures folder: what is being removed
KEPT = "kept"  # an empty file in a run's folder: the mark
CAPTURES_REMOVED = "captures_removed"  # key of run.json: when, and how many bytes
CAPTURE_FOLDERS = ("pcap", "trace")
MOST_DOCUMENT_BYTES = 1 << 28  # a larger run.json is none of ours
BLOCK_BYTES = 4096  # files take whole blocks
BROKEN_OFF = "the scenario "  # begin of the warning in run.json that `play` was interrupted


class Kind(StrEnum):
    """The kind of a folder in captures/."""

    RUN = "run"
    SWEEP = "sweep"
    FOREIGN = "foreign"  # neither, or a symbolic link


class Status(StrEnum):
    """What became of a run."""

    UP = "up"  # its lab is up
    RUNNING = "running"  # a simulation or a sweep that computes now
    COMPLETE = "complete"
    UNPLAYED = "not played"  # the lab was up, and its scenario was not played
    INTERRUPTED = "interrupted"
    FAILED = "failed"  # the lab died
    SIMULATED = "simulated"
    DAMAGED = "damaged"  # run.json cannot be read
    FOREIGN = "foreign"
    LINK = "symbolic link"


IN_USE = (Status.UP, Status.RUNNING)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The expectations of a run: how many there are, and how many were met."""

    met: int
    of: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One folder in captures/, as far as it can be read."""

    name: str
    folder: Path
    kind: Kind
    status: Status
    lab: str | None = None
    created_ns: int | None = None
    backend: str | None = None
    nodes: int | None = None
    runs: int | None = None  # of a sweep
    duration_s: float | None = None  # from the scenario's begin to its end, as played
    size_bytes: int = 0
    captures_bytes: int = 0
    analyzed: bool = False
    report: bool = False
    kept: bool = False
    captures_removed: bool = False
    expectations: Verdicts | None = None

    @property
    def removable(self) -> bool:
        """Whether the folder is a run or a sweep of ours that nothing uses."""
        return self.kind is not Kind.FOREIGN and self.status not in (*IN_USE, Status.DAMAGED)

    def age_s(self, now_ns: int) -> float | None:
        """Seconds since it was made; None if that is unknown."""
        return None if self.created_ns is None else max(0.0, (now_ns - self.created_ns) / 1e9)


# Reading folders. Their content is data: of unknown shape, and never followed through a symbolic link.


@contextmanager
def _opened(name: str | Path, inside: int | None = None) -> Iterator[int]:
    """A descriptor of a folder that is no symbolic link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _document(folder: Path, name: str) -> dict[str, Any] | None:
    """The JSON object in this regular file; None if there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block
    try:
        with _opened(folder) as inside:
            descriptor = os.open(name, flags, dir_fd=inside)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_DOCUMENT_BYTES:
            return None
        try:
            document = json.loads(file.read())
        except (OSError, ValueError, RecursionError):
            return None
    return document if isinstance(document, dict) else None


def _is_file(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISDIR(path.lstat().st_mode)
    return False


def size_of(path: Path) -> int:
    """Bytes that a file, or all files in a folder, take on the disk; symbolic links are not followed."""
    total, left = 0, [path]
    while left:
        each = left.pop()
        with suppress(OSError):
            about = each.lstat()
            if stat.S_ISDIR(about.st_mode):
                left += [Path(entry.path) for entry in os.scandir(each)]
            elif stat.S_ISREG(about.st_mode):
                total += -(-about.st_size // BLOCK_BYTES) * BLOCK_BYTES
    return total


def _of(document: Mapping[str, Any], *path: str) -> Any:
    """The value at this path of keys; None if there is none."""
    found: Any = document
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    """A number of nanoseconds, or of anything else."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value < 1 << 63 else None


def living_runs() -> frozenset[str]:
    """The runs of all labs that are up: those of this state folder, and those that processes belong to."""
    records = (load_lab(LabPlace.of(name)) for name in lab_names())
    known = {record.run for record in records if record is not None}
    return frozenset(known | {process.run for process in all_marked()})


def entries(root: Path, living: Collection[str] | None = None) -> list[Entry]:
    """All folders and symbolic links in the captures folder, the newest first."""
    living = living_runs() if living is None else living
    try:
        names = [
            each.name
            for each in os.scandir(root)
            if each.name != REMOVED and (each.is_symlink() or each.is_dir(follow_symlinks=False))
        ]
    except FileNotFoundError:
        return []
    found = [read_entry(root, name, living) for name in names]
    return sorted(found, key=lambda entry: (-(entry.created_ns or 0), entry.name))


def read_entry(root: Path, name: str, living: Collection[str]) -> Entry:
    """One folder of the captures folder."""
    folder = root / name
    if folder.is_symlink():
        return Entry(name, folder, Kind.FOREIGN, Status.LINK)
    if _is_file(folder / "run.json"):
        return _run_entry(folder, living)
    if _is_file(folder / "sweep.json"):
        return _sweep_entry(folder)
    return Entry(name, folder, Kind.FOREIGN, Status.FOREIGN, size_bytes=size_of(folder))


def _run_entry(folder: Path, living: Collection[str]) -> Entry:
    manifest, size = _document(folder, "run.json"), size_of(folder)
    if (
        manifest is None
        or _count(manifest.get("format")) is None
        or not all(_text(manifest.get(key)) for key in ("run", "lab", "status"))
    ):
        return Entry(folder.name, folder, Kind.RUN, Status.DAMAGED, size_bytes=size)
    nodes = _of(manifest, "topology", "nodes")
    begin, end = (_count(_of(manifest, "play", key)) for key in ("start_ns", "end_ns"))
    summary = _document(folder, "summary.json") if _is_file(folder / "summary.json") else None
    return Entry(
        folder.name,
        folder,
        Kind.RUN,
        _run_status(folder, manifest, living),
        lab=manifest["lab"],
        created_ns=_count(manifest.get("created_ns")),
        backend=_text(_of(manifest, "backend", "name")),
        nodes=len(nodes) if isinstance(nodes, list) else None,
        duration_s=(end - begin) / 1e9 if begin and end else None,
        size_bytes=size,
        captures_bytes=sum(size_of(folder / name) for name in CAPTURE_FOLDERS),
        analyzed=summary is not None and _is_folder(folder / "metrics"),
        report=_is_file(folder / "report.html"),
        kept=_is_file(folder / KEPT),
        captures_removed=bool(manifest.get(CAPTURES_REMOVED)),
        expectations=_verdicts(summary or {}),
    )


def _run_status(folder: Path, manifest: Mapping[str, Any], living: Collection[str]) -> Status:
    if manifest["status"] in UNFINISHED:
        if folder.name in living or manifest["run"] in living:
            return Status.UP
        return Status.RUNNING if is_being_written(RunPlace(folder)) else Status.INTERRUPTED
    if manifest["status"] == "down":
        return _ended_status(manifest)
    return Status.FAILED if manifest["status"] == "died" else Status.DAMAGED


def _ended_status(manifest: Mapping[str, Any]) -> Status:
    """The status of a run that ended in order."""
    if _of(manifest, "backend", "name") == SIMULATED:
        return Status.SIMULATED
    if manifest.get("play"):
        return Status.COMPLETE
    warnings = manifest.get("warnings")
    broken = isinstance(warnings, list) and any(
        isinstance(text, str) and text.startswith(BROKEN_OFF) for text in warnings
    )
    return Status.INTERRUPTED if broken else Status.UNPLAYED


def _verdicts(summary: Mapping[str, Any]) -> Verdicts | None:
    verdicts = summary.get("expectations")
    if not isinstance(verdicts, list) or not verdicts:
        return None
    met = sum(isinstance(each, Mapping) and each.get("ok") is True for each in verdicts)
    return Verdicts(met, len(verdicts))


def _sweep_entry(folder: Path) -> Entry:
    sheet, size = _document(folder, "sweep.json"), size_of(folder)
    if sheet is None or not isinstance(sheet.get("sweep"), Mapping):
        return Entry(folder.name, folder, Kind.SWEEP, Status.DAMAGED, size_bytes=size)
    with suppress(OSError):
        modified_ns = (folder / "sweep.json").lstat().st_mtime_ns  # written once, at its begin
        runs = [
            run
            for run in _names_in(folder / "runs")
            if _is_file(folder / "runs" / run / "run.json")
        ]
        done = _is_file(folder / "result.json")
        ended = Status.COMPLETE if done else Status.INTERRUPTED
        return Entry(
            folder.name,
            folder,
            Kind.SWEEP,
            Status.RUNNING if lock_is_held(folder) else ended,
            lab=_text(_of(sheet, "sweep", "lab")),
            created_ns=modified_ns,
            backend=_text(_of(sheet, "sweep", "backend")),
            runs=len(runs),
            size_bytes=size,
            analyzed=done,
            report=_is_file(folder / "report.html"),
            kept=_is_file(folder / KEPT),
        )
    return Entry(folder.name, folder, Kind.SWEEP, Status.DAMAGED, size_bytes=size)


def _names_in(folder: Path) -> list[str]:
    try:
        with _opened(folder) as inside, os.scandir(inside) as found:
            return [each.name for each in found]
    except OSError:
        return []


PARTS = ("captures", "logs", "metrics", "report", "other")
_PART_OF = {
    "pcap": "captures",
    "trace": "captures",
    "logs": "logs",
    "exec": "logs",
    "journal.jsonl": "logs",
    "machine.jsonl": "logs",
    "planned.jsonl": "logs",
    "published.jsonl": "logs",
    "metrics": "metrics",
    "summary.json": "metrics",
    "report.html": "report",
}


def sizes_by_part(folder: Path) -> dict[str, int]:
    """Bytes of captures (or traces), logs, metrics, the report, and the rest of a run's folder."""
    sizes = dict.fromkeys(PARTS, 0)
    for name in _names_in(folder):
        sizes[_PART_OF.get(name, "other")] += size_of(folder / name)
    return sizes


# Which folders a command means.


def named_entry(root: Path, name: str, living: Collection[str] | None = None) -> Entry:
    """The run or sweep of this name or path, directly in the captures folder; NoSuchRun if there is none."""
    living = living_runs() if living is None else living
    path = Path(name)
    plain = name == path.name and name not in ("", ".", "..", REMOVED)
    if not plain:
        parent, plain_name = path.parent.resolve(), path.name
        if parent != root or plain_name in ("", "..", REMOVED):
            raise NoSuchRun(
                f"{name} is not directly in {root}",
                "`testbed runs list` shows what can be named; TESTBED_CAPTURES names another folder",
            )
        name = plain_name
    if os.path.lexists(root / name) and (_is_folder(root / name) or (root / name).is_symlink()):
        return read_entry(root, name, living)
    known = entries(root, living)
    of_lab = [entry.name for entry in known if entry.lab == name]
    if of_lab:
        raise NoSuchRun(
            f"{name!r} is a lab, not a run", f"its newest run is {of_lab[0]}; name the run"
        )
    names = [entry.name for entry in known if entry.kind is not Kind.FOREIGN]
    raise NoSuchRun(
        f"no run {name!r} in {root}",
        did_you_mean(name, names) if names else "`testbed runs list` shows all",
    )


def refuse_removal(entry: Entry, *, force: bool) -> None:
    """InputError if this folder must stay; `force`: kept ones need not."""
    if entry.kind is Kind.FOREIGN:
        what = "a symbolic link" if entry.status is Status.LINK else "not the folder of a run"
        raise InputError(f"{entry.name} is {what}", f"look at it yourself: ls -l {entry.folder}")
    if entry.status is Status.DAMAGED:
        raise InputError(
            f"{entry.name} has a damaged {entry.kind}.json, so it may be something else",
            f"look at it yourself: ls -l {entry.folder}",
        )
    if entry.status is Status.UP:
        raise InputError(
            f"the lab of {entry.name} is up", f"end it first: testbed down {entry.lab}"
        )
    if entry.status is Status.RUNNING:
        raise InputError(f"{entry.name} is being computed", "wait until its command has ended")
    if entry.kept and not force:
        raise InputError(
            f"{entry.name} is kept", "--force removes it; `testbed runs keep --off` takes the mark"
        )


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which runs `prune` removes: those that meet all conditions."""

    older_than_s: float | None = None
    keep_last: int | None = None
    larger_than: int | None = None  # bytes
    captures_only: bool = False

    @property
    def empty(self) -> bool:
        """Whether no condition restricts the choice."""
        return self.older_than_s is None and self.keep_last is None and self.larger_than is None


@dataclass(frozen=True, slots=True)
class Selection:
    """What `prune` would remove, and what it spares although the conditions are met: name -> reason."""

    chosen: tuple[Entry, ...] = ()
    spared: Mapping[str, str] = field(default_factory=dict)

    def freed(self, criteria: Criteria) -> int:
        """Bytes that the removal frees."""
        return sum(
            entry.captures_bytes if criteria.captures_only else entry.size_bytes
            for entry in self.chosen
        )


def select(found: Sequence[Entry], criteria: Criteria, now_ns: int) -> Selection:
    """Choose among entries, the newest first. `keep_last` counts all runs and sweeps, also those that are kept."""
    ours = [entry for entry in found if entry.kind is not Kind.FOREIGN]
    ours = [entry for entry in ours if entry.status is not Status.DAMAGED]
    chosen, spared = [], {}
    for entry in ours[criteria.keep_last or 0 :]:
        if not _meets(entry, criteria, now_ns):
            continue
        if reason := _why_spared(entry, criteria):
            spared[entry.name] = reason
        else:
            chosen.append(entry)
    return Selection(tuple(chosen), spared)


def _meets(entry: Entry, criteria: Criteria, now_ns: int) -> bool:
    if criteria.older_than_s is not None:
        age_s = entry.age_s(now_ns)
        if age_s is None or age_s <= criteria.older_than_s:
            return False
    if criteria.larger_than is not None and entry.size_bytes <= criteria.larger_than:
        return False
    return not criteria.captures_only or entry.kind is Kind.SWEEP or entry.captures_bytes > 0


def _why_spared(entry: Entry, criteria: Criteria) -> str:
    if entry.status is Status.UP:
        return "its lab is up"
    if entry.status is Status.RUNNING:
        return "it is being computed"
    if entry.kept:
        return "it is kept"
    if criteria.captures_only and entry.kind is Kind.SWEEP:
        return "it is a sweep"
    if criteria.captures_only and not entry.analyzed:
        return "it is not analysed, and its captures are all there is"
    return ""


# Marks, and removal.


def mark_kept(entry: Entry, kept: bool) -> bool:
    """Set or take the mark; return whether it was different before."""
    if entry.kind is Kind.FOREIGN or entry.status is Status.DAMAGED:
        refuse_removal(entry, force=True)
    with _opened(entry.folder) as folder:
        if not kept:
            try:
                os.unlink(KEPT, dir_fd=folder)
            except FileNotFoundError:
                return False
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            os.close(os.open(KEPT, flags, 0o644, dir_fd=folder))
        except FileExistsError:
            return False
        return True


def remove_runs(
    root: Path,
    names: Iterable[str],
    removed: Callable[[Entry], None],
    *,
    force: bool = False,
    captures_only: bool = False,
) -> None:
    """Remove these runs and sweeps, or only their captures; each is judged again right before.

    `removed` is called after each. InputError if a folder must stay; TestbedError if it cannot be removed.
    """
    clear_removed(root)
    for name in names:
        entry = read_entry(root, name, living_runs())
        refuse_removal(entry, force=force)
        if captures_only:
            _remove_captures(root, entry)
        else:
            _remove(root, [entry.name])
        removed(entry)


def _remove_captures(root: Path, entry: Entry) -> None:
    """The manifest says so first, so that no command takes missing captures for a run without messages."""
    note = {"at_ns": time.time_ns(), "bytes": entry.captures_bytes}
    update_manifest(RunPlace(entry.folder), **{CAPTURES_REMOVED: note})
    present = [name for name in CAPTURE_FOLDERS if _is_folder(entry.folder / name)]
    _remove(root, [f"{entry.name}/{name}" for name in present])
    for name in present:  # an empty trace/ still says that the run was simulated
        (entry.folder / name).mkdir(exist_ok=True)


def _remove(root: Path, paths: Iterable[str]) -> None:
    """Move folders into `REMOVED` and remove them there."""
    with _opened(root) as folder:
        with suppress(FileExistsError):
            os.mkdir(REMOVED, 0o700, dir_fd=folder)
        for path in paths:
            aside = f"{path.replace('/', '.')}-{secrets.token_hex(4)}"
            try:
                with _opened(REMOVED, folder) as target:
                    os.rename(path, aside, src_dir_fd=folder, dst_dir_fd=target)
            except OSError as error:
                raise TestbedError(
                    f"{root / path} cannot be removed: {error.strerror}", "nothing of it is removed"
                ) from error
    clear_removed(root)


def clear_removed(root: Path) -> None:
    """Complete earlier removals; TestbedError names what cannot be removed."""
    try:
        with _opened(root) as folder:
            with _opened(REMOVED, folder) as target:
                with os.scandir(target) as found:
                    names = [each.name for each in found]
                for name in names:
                    _delete(target, name, root)
            with suppress(OSError):  # another command is removing something
                os.rmdir(REMOVED, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        where = root / REMOVED
        raise TestbedError(
            f"{where} cannot be cleared: {error.strerror}", f"rm -r {where}"
        ) from error


def _delete(inside: int, name: str, root: Path) -> None:
    try:
        shutil.rmtree(name, dir_fd=inside)  # by descriptors: follows no symbolic link
    except FileNotFoundError:  # another command removes it, too
        return
    except NotADirectoryError:
        os.unlink(name, dir_fd=inside)
    except OSError as error:
        where = root / REMOVED / name
        raise TestbedError(
            f"{where} cannot be removed: {error.strerror}", "remove it as its owner, or as root"
        ) from error
