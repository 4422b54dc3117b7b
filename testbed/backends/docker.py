"""Nodes as containers with `network_mode: none`; the keeper puts the links into their namespaces."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from docker.models.containers import Container
from docker.types import LogConfig, Mount

from testbed.backends.base import Done
from testbed.backends.clearing import clear_away
from testbed.backends.containers import LAB_DIR_LABEL, NODE_LABEL, in_parallel, marked, remove
from testbed.backends.engine import engine, engine_talk
from testbed.backends.image import ensure_image
from testbed.backends.local import LocalBackend, check_socket_paths
from testbed.backends.node_files import node_config, write_node_files
from testbed.errors import MissingCapability, TestbedError
from testbed.events import Emit
from testbed.keeper.processes import POLITE_S
from testbed.links.namespaces import privileged
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import Node, Topology

STOP_S = math.ceil(POLITE_S)  # the engine counts in seconds
INSIDE = "/testbed"
# The name is an argument of the shell, never part of its text.
COMMAND = f'exec python3 {INSIDE}/nodes.pyz {INSIDE}/node/node.json 2>"{INSIDE}/logs/$0.stderr"'


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
        check_socket_paths(self._lab, topology)
        self._image = self._ensure_image()
        super().prepare(topology)

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """Containers in place of those that died, each waiting at its gate, their namespaces known to the keeper."""
        self._check_before_creating()
        self._image = self._image or self._ensure_image()
        names = {node.name for node in nodes}
        dead = {name: found for name, found in self._containers().items() if name in names}
        _, failed = in_parallel(dead, remove)
        wanted = {node.name: node for node in nodes if node.name not in failed}
        pids, not_run = in_parallel(wanted, self._run_container)
        failed.update(not_run)
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

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Links, then containers."""
        self._keeper().unwire(names)
        containers = self._containers()
        wanted = {name: containers[name] for name in names if name in containers}
        _, failed = in_parallel(wanted, remove)
        for name in names:
            self._lab.node_config(name).unlink(missing_ok=True)
            done(name)
        self._complain("could not be removed", failed)

    def details(self) -> dict[str, Any]:
        """Also which engine and image, as far as they can still be asked."""
        found = super().details()
        try:
            with engine_talk():
                found["docker"] = engine().version()["Version"]
            for container in marked(self._lab):
                found["image"] = container.attrs["Config"]["Image"]
                found["image_id"] = container.attrs["Image"]
                break
        except TestbedError:
            return found
        return found

    def destroy(self) -> list[str]:
        """Processes that carry the mark, then containers that carry the label."""
        return clear_away(self._lab, self.name)

    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        """Those whose container runs, and is the one whose namespace the keeper holds."""
        running = {
            (name, container.attrs["State"]["Pid"])
            for name, container in self._containers().items()
            if container.status == "running"
        }
        return frozenset(
            name for name, kept in status["nodes"].items() if (name, kept["pid"]) in running
        )

    def _linkable(self, status: Mapping[str, Any], created: frozenset[str]) -> frozenset[str]:
        """A container takes its namespace with it, and so its link."""
        return created

    def _ensure_image(self) -> str:
        return ensure_image(engine(), self._lab, self._run.run, self._emit)

    def _containers(self) -> dict[str, Container]:
        return {found.labels[NODE_LABEL]: found for found in marked(self._lab)}

    def _run_container(self, node: Node) -> int:
        """Start a node's container; the pid of its process."""
        control, log = f"{INSIDE}/node/ctl", f"{INSIDE}/logs/{node.name}.jsonl"
        config = node_config(self._topology, node, self._run, control, log)
        write_node_files(self._lab, node, config)
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
                    str(self._program),
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
