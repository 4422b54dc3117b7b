"""The records of labs and runs: lab.json in a lab's state folder, run.json in a run's folder."""

import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from testbed.errors import InputError, NoSuchLab, NoSuchRun, few
from testbed.jsonfiles import read_json, write_json
from testbed.places import LAB_NAME, LabPlace, RunPlace, captures_root, own_state_root, state_root

FORMAT = 2
UNFINISHED = ("starting", "up", "played")  # status of a run whose lab is up
PARENTS_OF_A_PART = 3  # of a file of a run: metrics/hops.parquet/part-0.parquet
LOCK_POLL_S = 0.05  # while another command holds the lock


@dataclass(frozen=True, slots=True)
class LabRecord:
    """A lab that is up, or whose start was interrupted."""

    name: str
    run: str
    run_folder: str
    backend: str
    source: str  # the topology file

    @property
    def run_place(self) -> RunPlace:
        return RunPlace(Path(self.run_folder))


def save_lab(place: LabPlace, record: LabRecord) -> None:
    write_json(place.record, asdict(record))


def load_lab(place: LabPlace) -> LabRecord | None:
    """The lab's record; None if there is no such lab, or if the record is damaged."""
    data = read_json(place.record)
    if not isinstance(data, dict):
        return None
    try:
        return LabRecord(**data)
    except TypeError:  # of another version, or damaged
        return None


def lab_names() -> list[str]:
    """All labs with a state folder, in order."""
    try:
        entries = [*state_root().iterdir()]
    except FileNotFoundError:
        return []
    return sorted(one.name for one in entries if LAB_NAME.fullmatch(one.name) and one.is_dir())


def find_lab(name: str | None) -> LabRecord:
    """The lab of this name, or the only lab."""
    names = lab_names()
    if name is None:
        if len(names) != 1:
            if not names:
                raise NoSuchLab("which lab? no lab is up", "start one with `testbed up FILE`")
            labs = f"{len(names)} labs are up: {', '.join(names)}"
            raise NoSuchLab(f"which lab? {labs}", "name one; `testbed status` lists them")
        name = names[0]
    if name not in names:
        raise NoSuchLab(f"no lab named {name!r} is up", did_you_mean(name, names))
    record = load_lab(LabPlace.of(name))
    if record is None:
        raise NoSuchLab(
            f"lab {name!r} is damaged, or has only just begun",
            f"clear it with `testbed down {name}`",
        )
    return record


def did_you_mean(word: str, known: list[str]) -> str:
    """A hint with the nearest known word, or with all of them."""
    if close := get_close_matches(word, known, n=1):
        return f"did you mean {close[0]!r}?"
    return f"there is: {', '.join(known)}" if known else "start one with `testbed up FILE`"


def lock_file(lab: Path, doing: str) -> Path:
    """The file whose lock a command holds while it changes (or plays) the lab of this folder."""
    return lab.with_name(f".{lab.name}.{doing}")


def lock_is_held(path: Path) -> bool:
    """Whether a command holds this lock, by the kernel's list: an attempt to take it would disturb waiting commands."""
    try:
        inode = str(path.stat().st_ino)
    except OSError:
        return False
    held = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any("FLOCK" in fields and fields[-3].endswith(f":{inode}") for fields in held)


@contextmanager
def locked(name: str, doing: str = "changing", patience_s: float = 0.0) -> Iterator[None]:
    """Lock a lab: one command at a time changes (or plays) it. The last holder removes the lock file."""
    deadline = time.monotonic() + patience_s
    path = lock_file(own_state_root() / LabPlace.of(name).name, doing)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() < deadline:
                time.sleep(LOCK_POLL_S)
                continue
            raise InputError(
                f"another command is {doing} lab {name!r} right now", "try again when it has ended"
            ) from None
        try:
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                break  # other commands find this file, too
        except FileNotFoundError:
            pass
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def new_run(lab: str) -> RunPlace:
    """The paths of a new run; no folder is created yet."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return RunPlace(captures_root() / f"{lab}-{stamp}-{secrets.token_hex(2)}")


def make_run_folder(place: RunPlace) -> None:
    """Create the run's folder, and the folders in it."""
    for folder in (place.pcaps, place.logs):
        folder.mkdir(parents=True)


@contextmanager
def writing(place: RunPlace) -> Iterator[None]:
    """Lock a run's folder as one that this process computes; no lab says so of a simulation."""
    descriptor = os.open(place.logs, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_being_written(place: RunPlace) -> bool:
    """Whether a process computes this run now."""
    return lock_is_held(place.logs)


def find_run(name: str | None) -> RunPlace:
    """A run by folder path, by id, by the name of its lab (the newest), or the newest of all."""
    if name is not None and (Path(name) / "run.json").is_file():
        return RunPlace(Path(name).resolve())
    root = captures_root()
    known = sorted(
        (entry.parent for entry in root.glob("*/run.json")),
        key=lambda folder: (folder / "run.json").stat().st_mtime,
    )
    matching = [f for f in known if name is None or f.name == name or _lab_of(f) == name]
    if not matching:
        if name is not None and Path(name).exists():
            raise _no_run(Path(name))
        names = [folder.name for folder in known]
        message = f"no run {name!r} in {root}" if name else f"no run in {root} yet"
        hint = did_you_mean(name, names) if name and names else "make one: testbed run FILE"
        raise NoSuchRun(message, hint)
    return RunPlace(matching[-1])


def _no_run(path: Path) -> NoSuchRun:
    """Of a path that exists, and is not the folder of a run."""
    message = f"{path} has no run.json" if path.is_dir() else f"{path} is a file"
    whole = path.resolve().parents[:PARENTS_OF_A_PART]
    if run := next((folder for folder in whole if (folder / "run.json").is_file()), None):
        return NoSuchRun(message, f"it is a part of a run: name {run}")
    if is_sweep(path):
        return NoSuchRun(message, f"it is a sweep: its runs are in {path / 'runs'}")
    inside = sorted(found.parent for found in path.glob("*/run.json")) if path.is_dir() else []
    if inside:
        return NoSuchRun(message, f"runs in it: {few([str(folder) for folder in inside])}")
    return NoSuchRun(message, "name the folder of a run; `testbed run FILE` makes one")


def is_sweep(folder: Path) -> bool:
    """Whether `testbed sweep` has made this folder."""
    return (folder / "sweep.json").is_file()


def _lab_of(folder: Path) -> str:
    return folder.name.rsplit("-", 3)[0]


def read_manifest(run: RunPlace) -> dict[str, Any]:
    """run.json; an error sentence if it is missing or damaged."""
    data = read_json(run.manifest)
    if not isinstance(data, dict):
        raise InputError(f"{run.manifest} is missing or damaged", "the run cannot be read")
    if data.get("format") != FORMAT:
        raise InputError(
            f"{run.manifest} has format {data.get('format')!r}; this version reads {FORMAT}",
            "run its topology again, or use the version of testbed that made the run",
        )
    return data


def is_run_unfinished(run: RunPlace) -> bool:
    """Whether the run's lab is still up."""
    manifest = read_manifest(run)
    record = load_lab(LabPlace.of(manifest["lab"]))
    return manifest["status"] in UNFINISHED and record is not None and record.run == run.run


def update_manifest(place: RunPlace, /, **changes: Any) -> None:
    """Set top-level entries of run.json. Concurrent commands wait for each other."""
    _rewrite_manifest(place, lambda before: {**before, **changes})


def extend_manifest(place: RunPlace, /, **more: Sequence[Any]) -> None:
    """Append to lists of run.json, such as its warnings; entries of concurrent commands are preserved."""
    _rewrite_manifest(
        place,
        lambda before: {
            **before,
            **{name: [*before.get(name, []), *entries] for name, entries in more.items()},
        },
    )


def _rewrite_manifest(place: RunPlace, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    folder = os.open(place.folder, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        write_json(place.manifest, change(read_json(place.manifest) or {"format": FORMAT}))
    finally:
        os.close(folder)


def remove_lab_folder(place: LabPlace) -> None:
    """Remove the lab's state folder."""
    shutil.rmtree(place.folder, ignore_errors=True)
