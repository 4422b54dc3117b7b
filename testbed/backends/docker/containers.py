"""The containers of labs: found and removed by their labels, several at a time."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from docker.errors import APIError, NotFound

from testbed.backends.docker.engine import (
    ENGINE_ERRORS,
    LOOK_TIMEOUT_S,
    engine,
    engine_errors,
    engine_message,
)
from testbed.errors import TestbedError
from testbed.places import LabPlace, RunPlace

LAB_DIR_LABEL = "testbed.lab_dir"
NODE_LABEL = "testbed.node"
RUN_LABEL = "testbed.run"
ROLE_LABEL = "testbed.role"
EXTERNAL_ROLE = "external"  # the role of a container that runs an external node's program
AT_ONCE = 8  # more workers do not make the engine faster
NOT_RUN = 126  # the exit code of a command that could not be run, as in a shell
QUIET_S = 0.5  # a container that was being created when its command died appears within this time
MOST_ROUNDS = 100  # a removal that another process has begun takes several rounds
MOST_FAILURES = 3  # rounds in which the engine refuses

Result = TypeVar("Result")


def labels_of(node: str, lab: LabPlace, run: RunPlace) -> dict[str, str]:
    """The marks that a node's containers carry."""
    return {
        LAB_DIR_LABEL: str(lab.folder),
        NODE_LABEL: node,
        "testbed.lab": lab.name,
        RUN_LABEL: run.run,
    }


@dataclass(frozen=True, slots=True)
class Container:
    """A container of some lab, as the engine lists it."""

    id: str
    name: str
    lab: Path  # the lab's folder
    run: str
    state: str  # running, exited, created, ...
    created_s: float  # seconds since 1970
    node: str = ""
    role: str = ""
    status_text: str = ""  # the engine's text: Up 3 seconds, Exited (1) 2 minutes ago, ...


def all_containers() -> list[Container]:
    """The containers of all labs, running or not."""
    return _containers([LAB_DIR_LABEL])


def lab_containers(lab: LabPlace, role: str | None = None) -> list[Container]:
    """The containers of one lab (of one role), running or not, by a single request to the engine."""
    whose = f"{LAB_DIR_LABEL}={lab.folder}"
    return _containers([whose] if role is None else [whose, f"{ROLE_LABEL}={role}"])


@engine_errors()
def _containers(labels: Sequence[str]) -> list[Container]:
    listed = engine(LOOK_TIMEOUT_S).api.containers(all=True, filters={"label": list(labels)})
    return [
        Container(
            id=found["Id"],
            name=found["Names"][0].lstrip("/") if found["Names"] else found["Id"][:12],
            lab=Path(found["Labels"][LAB_DIR_LABEL]),
            run=found["Labels"].get(RUN_LABEL, ""),
            node=found["Labels"].get(NODE_LABEL, ""),
            role=found["Labels"].get(ROLE_LABEL, ""),
            state=found["State"],
            status_text=found.get("Status", ""),
            created_s=float(found["Created"]),
        )
        for found in listed
    ]


def remove_marked(lab: LabPlace) -> list[str]:
    """Remove the lab's containers; return sentences on what was removed."""
    return remove_containers(
        lambda: lab_containers(lab), f"lab {lab.name}", f"testbed down {lab.name}"
    )


def remove_containers(find: Callable[[], list[Container]], whose: str, again: str) -> list[str]:
    """Remove what `find` finds, until two rounds in a row find nothing; return sentences on what was removed."""
    removed: dict[str, str] = {}
    failed: dict[str, str] = {}
    failures = empty = 0
    found: Mapping[str, Container] = {}
    for _ in range(MOST_ROUNDS):
        found = {container.name: container for container in find()}
        empty = 0 if found else empty + 1
        if empty == 2:
            return list(removed.values())
        _, failed = in_parallel(found, remove_container)
        failures += bool(failed)
        if failures == MOST_FAILURES:
            break
        news = found.keys() - failed.keys() - removed.keys()
        removed |= {name: f"container {name}" for name in news}
        if not news:
            time.sleep(QUIET_S)
    reasons = "; ".join(sorted(set(failed.values()))) or "their removal does not end"
    raise TestbedError(
        f"containers of {whose} could not be removed: {', '.join(sorted(found))} ({reasons})",
        f"`docker rm --force` may say more; then `{again}` again",
    )


def remove_container(container: Container) -> None:
    """Remove a container in any state; a removal that is already in progress is no error."""
    try:
        engine(LOOK_TIMEOUT_S).api.remove_container(container.id, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # removal is already in progress
            raise


def run_inside(
    container: Container, command: Sequence[str], output: Path
) -> Callable[[], int | None]:
    """Start a command in a container; its output goes to the file. Returns a function for its exit code."""
    codes: list[int] = []

    def run() -> None:
        with engine_errors():
            api = engine().api
            made = api.exec_create(container.id, list(command))["Id"]
            output.write_bytes(api.exec_start(made) or b"")
            codes.append(int(api.exec_inspect(made)["ExitCode"]))

    def run_to_its_end() -> None:
        try:
            run()
        except (TestbedError, OSError) as error:
            output.write_text(f"it could not be run: {error}\n")
            codes.append(NOT_RUN)

    threading.Thread(target=run_to_its_end, daemon=True).start()
    return lambda: codes[0] if codes else None


def in_parallel(
    items: Mapping[str, Any],
    work: Callable[[Any], Result],
    finished: Callable[[str, Result], None] = lambda _name, _result: None,
) -> tuple[dict[str, Result], dict[str, str]]:
    """Results by name, and the reasons of failures. An interrupt cancels work that has not begun.

    `finished` is called for each success as it happens, in the calling thread.
    """
    results: dict[str, Result] = {}
    failed: dict[str, str] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {pool.submit(work, item): name for name, item in items.items()}
        try:
            for future in as_completed(futures):
                name = futures[future]
                try:
                    results[name] = future.result()
                except ENGINE_ERRORS as error:
                    failed[name] = engine_message(error)
                else:
                    finished(name, results[name])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results, {name: failed[name] for name in items if name in failed}
