"""Orphans: processes, containers and files with our mark that belong to no living lab, after crashes and reboots.

A mark names its lab's folder and run. Its carrier is an orphan if that folder is gone, or belongs to another run.
A folder that this user may not read belongs to another user, and never counts as gone.
"""

import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from testbed.backends.docker.build_folder import abandoned_build_folders, remove_abandoned
from testbed.backends.docker.containers import Container, all_containers, remove_containers
from testbed.errors import InputError, TestbedError
from testbed.jsonfiles import read_json
from testbed.keeper.processes import Process, all_marked, end_all
from testbed.places import LAB_NAME, LabPlace, RunPlace, captures_root, state_root
from testbed.records import (
    UNFINISHED,
    lab_names,
    load_lab,
    lock_file,
    lock_is_held,
    locked,
)

REMEDY = "testbed down --orphans"
LOCK_NAME = re.compile(rf"\.{LAB_NAME.pattern}\.(changing|playing)")


class OrphanKind(StrEnum):
    """Kinds of orphans."""

    LAB = "lab"
    PROCESS = "process"
    CONTAINER = "container"
    BUILD = "build folder"
    LOCK = "lock"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Orphan:
    """One orphan. `removable`: whether `testbed down --orphans` removes it; run folders hold captures and stay."""

    what: OrphanKind
    name: str
    lab: str
    age_s: float
    remedy: str
    removable: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """All orphans, and the reasons why some kinds could not be searched."""

    orphans: tuple[Orphan, ...]
    unseen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cleared:
    """Sentences on what was removed, what is left and why, and what could not be searched."""

    removed: tuple[str, ...]
    left: tuple[str, ...]
    unseen: tuple[str, ...] = ()


def find_orphans() -> Found:
    """All orphans on this machine, whatever state folder their lab was in; nothing is changed."""
    processes, (containers, unseen) = all_marked(), _containers_if_engine_answers()
    orphans = (
        *dead_labs(processes, containers),
        *(_process(each) for each in orphan_processes(processes)),
        *(_container(each) for each in orphan_containers(containers)),
        *(
            Orphan(OrphanKind.BUILD, str(folder), "", _age(folder), REMEDY)
            for folder in abandoned_build_folders()
        ),
        *(Orphan(OrphanKind.LOCK, str(lock), "", _age(lock), REMEDY) for lock in stale_locks()),
        *unfinished_runs(processes, containers),
    )
    return Found(orphans, tuple(unseen))


def remove_orphans(below: Path | None = None) -> Cleared:
    """Remove marked processes, containers, folders and locks that belong to no lab; `below`: only labs of that folder.

    Dead labs stay (`bring_down` removes them), and so do run folders: captures belong to the user.
    """
    ended, refused = end_all(lambda: orphan_processes(all_marked(), below))
    removed = [
        f"ended {process.role} of {process.lab} (process {process.pid})" for process in ended
    ]
    left = [f"process {pid} is another user's: `sudo {REMEDY}`" for pid in refused]
    containers, unseen = _containers_if_engine_answers()
    if orphan_containers(containers, below):
        try:
            removed += remove_containers(
                lambda: orphan_containers(all_containers(), below), "labs that are gone", REMEDY
            )
        except TestbedError as error:
            left.append(f"{error.message}; {error.hint}")
    for folder in abandoned_build_folders():
        if trouble := remove_abandoned(folder):
            left.append(trouble)
        else:
            removed.append(f"folder {folder}")
    removed += [f"lock {lock}" for lock in stale_locks() if _remove_lock(lock)]
    return Cleared(tuple(removed), tuple(left), tuple(unseen))


def orphan_processes(processes: Iterable[Process], below: Path | None = None) -> list[Process]:
    """Processes whose lab is gone; a folder that only the process itself can see counts as present."""
    return [
        process
        for process in processes
        if _within(process.lab, below)
        and not _lab_exists(process.lab, process.run)
        and _gone(Path(f"/proc/{process.pid}/root", *process.lab.parts[1:]), process.run)
    ]


def orphan_containers(
    containers: Iterable[Container], below: Path | None = None
) -> list[Container]:
    """Containers, dead or alive, whose lab is gone."""
    return [
        container
        for container in containers
        if _within(container.lab, below) and not _lab_exists(container.lab, container.run)
    ]


def dead_labs(processes: Iterable[Process], containers: Iterable[Container]) -> list[Orphan]:
    """Labs that have a folder but no keeper, while no command changes them."""
    processes, root = list(processes), state_root()
    with_keeper = {process.lab for process in processes if process.role == "keeper"}
    own = {root / name for name in lab_names()}
    named = {process.lab for process in processes} | {container.lab for container in containers}
    return [
        Orphan(
            OrphanKind.LAB,
            folder.name,
            str(folder),
            _age(folder),
            _how_to_end(folder),
            folder in own,
        )
        for folder in sorted(own | {folder for folder in named if _mine(folder)})
        if folder not in with_keeper and not lock_is_held(lock_file(folder, "changing"))
    ]


def unfinished_runs(processes: Iterable[Process], containers: Iterable[Container]) -> list[Orphan]:
    """Run folders whose manifest says that the lab is up, while no process of it lives."""
    records = (load_lab(LabPlace.of(name)) for name in lab_names())
    living = {record.run for record in records if record is not None}
    living |= {process.run for process in processes}
    living |= {container.run for container in containers if container.state == "running"}
    found = []
    for manifest in sorted(captures_root().glob("*/run.json")):
        run, document = RunPlace(manifest.parent), read_json(manifest)
        if not isinstance(document, dict) or run.run in living:
            continue
        if document.get("status") in UNFINISHED:
            lab, keep = str(document.get("lab", "")), f"captures stay; testbed runs rm {run.run}"
            found.append(
                Orphan(OrphanKind.RUN, run.run, lab, _age(manifest), keep, removable=False)
            )
    return found


def stale_locks() -> list[Path]:
    """Lock files of this user that no process holds."""
    try:
        entries = sorted(state_root().iterdir())
    except OSError:
        return []
    return [
        entry for entry in entries if LOCK_NAME.fullmatch(entry.name) and not lock_is_held(entry)
    ]


def _remove_lock(lock: Path) -> bool:
    """Whether the lock file was removed. Its last holder removes it, so hold it for a moment."""
    lab, _, doing = lock.name.removeprefix(".").rpartition(".")
    try:
        with locked(lab, doing):
            return True
    except InputError:  # another process has taken it meanwhile
        return False


def _containers_if_engine_answers() -> tuple[list[Container], list[str]]:
    try:
        return all_containers(), []
    except TestbedError as error:
        return [], [f"containers were not looked for: {error.message}"]


def _lab_exists(folder: Path, run: str) -> bool:
    """Whether the lab of this folder exists and still has this run."""
    return not _gone(folder, run)


def _gone(folder: Path, run: str) -> bool:
    try:
        folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    record = load_lab(LabPlace(folder))
    return record is not None and bool(run) and record.run != run


def _mine(folder: Path) -> bool:
    """Whether this user owns the lab's folder, or is root."""
    try:
        return os.geteuid() in (0, folder.lstat().st_uid)
    except OSError:
        return False


def _within(folder: Path, below: Path | None) -> bool:
    return below is None or folder.is_relative_to(below)


def _how_to_end(folder: Path) -> str:
    elsewhere = "" if folder.parent == state_root() else f"TESTBED_STATE={folder.parent} "
    return f"{elsewhere}testbed down {folder.name}"


def _process(process: Process) -> Orphan:
    name = f"{process.role} ({process.pid})"
    return Orphan(OrphanKind.PROCESS, name, str(process.lab), process.age_s, REMEDY)


def _container(container: Container) -> Orphan:
    name, age_s = (
        f"{container.name} ({container.state})",
        max(0.0, time.time() - container.created_s),
    )
    return Orphan(OrphanKind.CONTAINER, name, str(container.lab), age_s, REMEDY)


def _age(path: Path) -> float:
    try:
        return max(0.0, time.time() - path.lstat().st_mtime)
    except OSError:
        return 0.0
