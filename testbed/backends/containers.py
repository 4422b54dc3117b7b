"""A lab's containers: found by their label, removed by it, worked on several at a time."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from docker.errors import APIError, NotFound
from docker.models.containers import Container

from testbed.backends.engine import LOOK_TIMEOUT_S, TROUBLE, engine, engine_talk, in_its_words
from testbed.errors import TestbedError
from testbed.places import LabPlace

LAB_DIR_LABEL = "testbed.lab_dir"
NODE_LABEL = "testbed.node"
AT_ONCE = 8  # more workers do not make the engine faster
QUIET_S = 0.5  # a creation that was under way when its command died shows up within this time
MOST_ROUNDS = 100  # a removal that somebody else has begun takes several looks
MOST_FAILURES = 3  # rounds in which the engine refuses

Result = TypeVar("Result")


@engine_talk()
def marked(lab: LabPlace) -> list[Container]:
    """All containers of the lab, running or not."""
    label = f"{LAB_DIR_LABEL}={lab.folder}"
    return engine(LOOK_TIMEOUT_S).containers.list(
        all=True, filters={"label": label}, ignore_removed=True
    )


def remove_marked(lab: LabPlace) -> list[str]:
    """Remove the lab's containers until two looks in a row find none; what was removed, as sentences."""
    removed: dict[str, str] = {}
    failed: dict[str, str] = {}
    failures = empty = 0
    found: dict[str, Container] = {}
    for _ in range(MOST_ROUNDS):
        found = {str(container.name): container for container in marked(lab)}
        empty = 0 if found else empty + 1
        if empty == 2:
            return list(removed.values())
        _, failed = in_parallel(found, remove)
        failures += bool(failed)
        if failures == MOST_FAILURES:
            break
        removed |= {name: f"container {name}" for name in found.keys() - failed.keys()}
        time.sleep(QUIET_S)
    reasons = "; ".join(sorted(set(failed.values()))) or "their removal does not end"
    raise TestbedError(
        f"containers of lab {lab.name} could not be removed: {', '.join(sorted(found))} ({reasons})",
        f"`docker rm --force` may say more; then `testbed down {lab.name}` again",
    )


def remove(container: Container) -> None:
    """Remove a container, whatever it does; that somebody else does so already is fine."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # removal is already in progress
            raise


def in_parallel(
    items: Mapping[str, Any], work: Callable[[Any], Result]
) -> tuple[dict[str, Result], dict[str, str]]:
    """Results by name, and the reasons of those that failed."""
    results: dict[str, Result] = {}
    failed: dict[str, str] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {name: pool.submit(work, item) for name, item in items.items()}
        for name, future in futures.items():
            try:
                results[name] = future.result()
            except TROUBLE as error:
                failed[name] = in_its_words(error)
    return results, failed
