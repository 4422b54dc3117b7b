"""Nodes as containers with `network_mode: none`; the keeper puts the links into their namespaces."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container
from docker.types import LogConfig, Mount

from testbed.backends.base import Done
from testbed.backends.clearing import clear_away
from testbed.backends.engine import engine
from testbed.backends.image import ensure_image
from testbed.backends.local import LocalBackend
from testbed.backends.node_files import node_config, write_node_files
from testbed.errors import MissingCapability
from testbed.events import Emit
from testbed.links.namespaces import privileged
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import Node, Topology
from testbed.zipapp import build

LAB_DIR_LABEL = "testbed.lab_dir"
NODE_LABEL = "testbed.node"
AT_ONCE = 8  # more workers do not make the engine faster
STOP_S = 7  # a node hands over for 3 s and closes for 3 s at most
QUIET_S = 0.3  # a creation that was under way when its command died shows up within this time
INSIDE = "/testbed"
# The name is an argument of the shell, never part of its text.
COMMAND = f'exec python3 {INSIDE}/nodes.pyz {INSIDE}/node/node.json 2>"{INSIDE}/logs/$0.stderr"'

Result = TypeVar("Result")


class DockerBackend(LocalBackend):
    """One lab as containers."""

    name = "docker"

    def __init__(self, lab: LabPlace, run: RunPlace, topology: Topology, emit: Emit) -> None:
        super().__init__(lab, run, topology)
        self._emit = emit
        self._image = ""

    def prepare(self, topology: Topology) -> None:
        """An engine and an image first: without them there is no point in a core."""
        if not privileged():
            raise MissingCapability(
                "the docker backend puts links into containers, which takes root",
                "use sudo, or --backend netns",
            )
        self._image = ensure_image(engine(), self._emit)
        super().prepare(topology)

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """Containers, each waiting at its gate, their namespaces known to the keeper."""
        self._run.logs.mkdir(parents=True, exist_ok=True)
        zipapp = self._lab.folder / "nodes.pyz"
        if not zipapp.exists():
            build(zipapp)
        self._image = self._image or ensure_image(engine(), self._emit)
        pids, failed = in_parallel({node.name: node for node in nodes}, self._run_container)
        failed.update(self._keeper().adopt(pids))
        for name in pids.keys() - failed.keys():
            done(name)
        self._complain("could not be created", failed)

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """SIGTERM; the engine sends SIGKILL to those that do not heed it."""
        containers = self._containers()
        wanted = {node.name: containers[node.name] for node in nodes if node.name in containers}
        _, failed = in_parallel(wanted, lambda container: container.stop(timeout=STOP_S))
        for node in nodes:
            if node.name not in failed:
                done(node.name)
        self._complain("did not end", failed)

    def remove(self, nodes: Sequence[Node], done: Done) -> None:
        """Links, then containers."""
        self._keeper().unwire([node.name for node in nodes])
        containers = self._containers()
        wanted = {node.name: containers[node.name] for node in nodes if node.name in containers}
        _, failed = in_parallel(wanted, remove)
        for node in nodes:
            self._lab.node_config(node.name).unlink(missing_ok=True)
            done(node.name)
        self._complain("could not be removed", failed)

    def details(self) -> dict[str, Any]:
        """Also which engine and image."""
        version = engine().version()["Version"]
        image = self._image or ensure_image(engine(), self._emit)
        identity = engine().images.get(image).id
        return {**super().details(), "docker": version, "image": image, "image_id": identity}

    def destroy(self) -> list[str]:
        """Containers that carry the label, then processes that carry the mark; also when the engine is gone."""
        return clear_away(self._lab)

    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        containers = self._containers()
        running = {name for name, container in containers.items() if container.status == "running"}
        return frozenset(running & status["nodes"].keys())

    def _containers(self) -> dict[str, Container]:
        return {found.labels[NODE_LABEL]: found for found in marked(self._lab)}

    def _run_container(self, node: Node) -> int:
        """Start a node's container in place of one that died; the pid of its process."""
        control, log = f"{INSIDE}/node/ctl", f"{INSIDE}/logs/{node.name}.jsonl"
        config = node_config(self._topology, node, self._run, control, log)
        write_node_files(self._lab, node, config)
        dead = self._containers().get(node.name)
        if dead is not None:
            remove(dead)
        container = engine().containers.run(
            self._image,
            command=["sh", "-c", COMMAND, node.name],
            name=f"{self._run.run}-{node.name}",
            hostname=node.name,
            detach=True,
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            log_config=LogConfig(type=LogConfig.types.NONE),
            mounts=[
                Mount(f"{INSIDE}/node", str(self._lab.node(node.name)), type="bind"),
                Mount(f"{INSIDE}/logs", str(self._run.logs), type="bind"),
                Mount(
                    f"{INSIDE}/nodes.pyz",
                    str(self._lab.folder / "nodes.pyz"),
                    type="bind",
                    read_only=True,
                ),
            ],
            labels={
                LAB_DIR_LABEL: str(self._lab.folder),
                NODE_LABEL: node.name,
                "testbed.lab": self._lab.name,
                "testbed.run": self._run.run,
            },
        )
        container.reload()
        return int(container.attrs["State"]["Pid"])


def marked(lab: LabPlace) -> list[Container]:
    """All containers of the lab, running or not."""
    label = f"{LAB_DIR_LABEL}={lab.folder}"
    return engine().containers.list(all=True, filters={"label": label}, ignore_removed=True)


def remove_marked(lab: LabPlace) -> list[str]:
    """Remove the lab's containers until none has come up for a while; what was removed, as sentences."""
    removed: list[str] = []
    while found := {str(container.name): container for container in marked(lab)}:
        in_parallel(found, remove)
        removed += [f"container {name}" for name in found if f"container {name}" not in removed]
        time.sleep(QUIET_S)
    return removed


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
            except DockerException as error:
                failed[name] = str(getattr(error, "explanation", None) or error)
    return results, failed
