"""Nodes as containers with `network_mode: none`; the keeper puts the links into their namespaces."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docker.types import LogConfig, Mount

from testbed.backends.common.base import Done, Ended
from testbed.backends.common.local import LocalBackend, check_socket_paths
from testbed.backends.common.node_config import lab_secret, node_config
from testbed.backends.common.zipapp import build
from testbed.backends.docker.containers import (
    EXTERNAL_ROLE,
    Container,
    in_parallel,
    lab_containers,
    labels_of,
    remove_container,
    run_inside,
)
from testbed.backends.docker.engine import LOOK_TIMEOUT_S, engine, engine_errors
from testbed.backends.docker.external_nodes import (
    external_container,
    external_containers,
    holder_container,
    save_output,
    wait_for_ports,
    write_external_files,
    write_hosts_files,
)
from testbed.backends.docker.images import ImageOwner
from testbed.backends.docker.node_limits import ContainerSettings, details, settings_for
from testbed.backends.docker.removal import remove_lab
from testbed.errors import MissingCapability, TestbedError
from testbed.keeper.processes import STOP_GRACE_S
from testbed.links.namespaces import privileged
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit, Incomplete
from testbed.topology.model import Node, Topology

# The description of a node's container, for the engine. Pure.


INSIDE = "/testbed"
# The name is an argument of the shell, never part of its text.
COMMAND = f'exec python3 -IS {INSIDE}/nodes.pyz {INSIDE}/node/node.json 2>"{INSIDE}/logs/$0.stderr"'


def node_container(
    image: str, node: Node, lab: LabPlace, run: RunPlace, program: Path
) -> dict[str, Any]:
    """A broker, sensor or subscriber: no network yet, no rights; only its folder and the logs are writable."""
    return {
        "image": image,
        "command": ["sh", "-c", COMMAND, node.name],
        "name": f"{run.run}-{node.name}",
        "hostname": node.name,
        "network_mode": "none",
        # Without this, the engine runs its own 100 MB program as a hook at each container's start, only to find that
        # there is nothing to connect. That takes half of the processor time of a start.
        "network_disabled": True,
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "mounts": [
            Mount(f"{INSIDE}/node", str(lab.node(node.name)), type="bind"),
            Mount(f"{INSIDE}/logs", str(run.logs), type="bind"),
            Mount(f"{INSIDE}/nodes.pyz", str(program), type="bind", read_only=True),
        ],
        "labels": labels_of(node.name, lab, run),
    }


def with_settings(recipe: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The container with its image, platform and limits; labels are merged."""
    return {**recipe, **settings, "labels": {**recipe["labels"], **settings.get("labels", {})}}


STOP_S = math.ceil(STOP_GRACE_S)  # the engine counts in seconds


class DockerBackend(LocalBackend):
    """One lab as containers."""

    name = "docker"

    def __init__(self, lab: LabPlace, run: RunPlace, topology: Topology, emit: Emit) -> None:
        super().__init__(lab, run, topology)
        self._emit = emit
        self._settings: ContainerSettings | None = None

    def prepare(self, topology: Topology) -> None:
        """Check the engine and obtain the images before the core is made."""
        if not privileged():
            raise MissingCapability(
                "the docker backend puts links into containers, which takes root",
                "use sudo, or --backend netns",
            )
        check_socket_paths(self._lab, topology)
        self._settings_for(topology.here)
        super().prepare(topology)
        build(self._program)

    def _create(self, nodes: Sequence[Node], done: Done) -> None:
        """Replace dead containers; each new one waits at its gate, and the keeper adopts its namespace."""
        self._settings_for(nodes)
        write_hosts_files(self._lab, self._topology)
        failed = self._clear(self._containers_of(node.name for node in nodes))
        wanted = {node.name: node for node in nodes if node.name not in failed}
        keeper = self._keeper()

        def make(node: Node) -> str:
            return keeper.adopt({node.name: self._run_container(node)}).get(node.name, "")

        def finished(name: str, refusal: str) -> None:
            if refusal:
                failed[name] = refusal
            else:
                done(name)

        _, not_run = in_parallel(wanted, make, finished)
        self._raise_failures("could not be created", {**failed, **not_run})

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        """Open the gates. External nodes, which have no gate, start only now, servers first."""
        externals = [node for node in nodes if node.external]
        servers = [node for node in externals if node.external and node.external.port]
        failed = self._start_external(servers, done)
        # Some clients give up if their server does not listen yet.
        if len(servers) < len(externals):
            wait_for_ports(self._lab, [node for node in servers if node.name not in failed])
            clients = [node for node in externals if node not in servers]
            failed |= self._start_external(clients, done)
        ours = [node for node in nodes if node.ours]
        self._raise_failures("did not start", {**failed, **self._open_gates(ours, done)})

    def _start_external(self, nodes: Sequence[Node], done: Done) -> dict[str, str]:
        """Start each in the namespace of its holder, in place of an ended one; return the reasons of failures."""
        if not nodes:
            return {}
        self._settings_for(nodes)
        found = self._containers_of(node.name for node in nodes)
        failed = self._clear(container for container in found if container.role == EXTERNAL_ROLE)
        holders = {
            container.node: container.id for container in found if container.role != EXTERNAL_ROLE
        }
        lost = (node.name for node in nodes if node.name not in holders)
        failed |= dict.fromkeys(lost, "the container that held its network has gone")
        wanted = {
            node.name: (node, holders[node.name]) for node in nodes if node.name not in failed
        }
        begun, not_begun = in_parallel(wanted, lambda pair: self._run_external(*pair))
        for name in begun:
            done(name)
        return failed | not_begun

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """Send SIGTERM, then SIGKILL after a grace period. Save the output of external nodes.

        The keeper signals the other nodes: through the engine, each signal would cost a run of `runc`.
        """
        failed = self._end([node.name for node in nodes if node.ours], done)
        theirs = {node.name for node in nodes if node.external}
        externals = (
            {
                container.node: container
                for container in external_containers(self._lab)
                if container.node in theirs
            }
            if theirs
            else {}
        )
        _, not_ended = in_parallel(externals, _stop)
        for name in theirs - not_ended.keys():
            done(name)
        for external in externals.values():
            self._save_output(external)
        self._raise_failures("did not end", {**failed, **not_ended})

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Remove links, then containers."""
        self._keeper().unwire(names)
        write_hosts_files(self._lab, self._topology)
        failed = self._clear(self._containers_of(names))
        for name in names:
            self._lab.node_config(name).unlink(missing_ok=True)
            if name not in failed:
                done(name)
        self._raise_failures("could not be removed", failed)

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        """Run a command in the node's container."""
        found = external_containers(self._lab) if node.external else self._holders().values()
        container = next((each for each in found if each.node == node.name), None)
        if container is None:
            raise TestbedError(f"{node.name} has no container", "`testbed up` completes the lab")
        return run_inside(container, command, output)

    def details(self) -> dict[str, Any]:
        """Also engine, images and limits, if the engine still answers."""
        found = super().details()
        try:
            with engine_errors():
                found["docker"] = engine().version()["Version"]
            found |= details(self._lab)
        except TestbedError:
            return found
        return found

    def destroy(self) -> list[str]:
        """Remove processes with the lab's mark, then containers with its label."""
        return remove_lab(self._lab, self.name)

    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        """Nodes whose container runs and has the namespace that the keeper holds; and routers."""
        running = {
            name for name, container in self._holders().items() if container.state == "running"
        }
        return frozenset(
            name
            for name, entry in status["nodes"].items()
            if entry["pid"] is None or (entry["running"] and name in running)
        )

    def _linkable(self, status: Mapping[str, Any], created: frozenset[str]) -> frozenset[str]:
        """Only running nodes: the namespace and the link vanish with a container."""
        return created

    def _settings_for(self, nodes: Sequence[Node]) -> ContainerSettings:
        """Images and limits for at least these nodes."""
        if self._settings is None or not self._settings.covers(nodes):
            owner = ImageOwner(self._emit, self._lab, self._run.run)
            self._settings = settings_for(nodes, owner)
        return self._settings

    @property
    def _program(self) -> Path:
        """The nodes' program, as it was when the lab was prepared."""
        return self._lab.folder / "nodes.pyz"

    def _holders(self) -> dict[str, Container]:
        """The container that holds each node's namespace: the node itself, or the holder of an external node."""
        return {
            container.node: container
            for container in lab_containers(self._lab)
            if container.role != EXTERNAL_ROLE
        }

    def _containers_of(self, names: Iterable[str]) -> list[Container]:
        """All containers of these nodes."""
        wanted = set(names)
        return [container for container in lab_containers(self._lab) if container.node in wanted]

    def _clear(self, found: Iterable[Container]) -> dict[str, str]:
        """Remove containers and save the output of external nodes; return reasons of failures by node."""
        going = {container.name: container for container in found}
        for container in going.values():
            if container.role == EXTERNAL_ROLE:
                self._save_output(container)
        _, failed = in_parallel(going, remove_container)
        return {going[name].node: reason for name, reason in failed.items()}

    def _save_output(self, external: Container) -> None:
        try:
            save_output(external, self._run)
        except (TestbedError, OSError) as error:
            self._emit(Incomplete(f"the output of {external.node} could not be saved: {error}"))

    def _started(self, created: frozenset[str]) -> frozenset[str]:
        externals = {node.name for node in self._topology.nodes if node.external}
        found = external_containers(self._lab) if externals else []
        running = {container.node for container in found if container.state == "running"}
        return super()._started(created - externals) | (running & created)

    def _run_container(self, node: Node) -> int:
        """Start a node's container; return the pid of its process."""
        control, log = f"{INSIDE}/node/ctl", f"{INSIDE}/logs/{node.name}.jsonl"
        secret = lab_secret(self._lab)
        config = node_config(self._topology, node, self._run, control, log, secret)
        self._write(node, config)
        settings = self._settings_for([node])
        given = settings.holder() if node.external else settings.ours(node)
        image = given["image"]
        if node.external:
            recipe = holder_container(image, node, self._lab, self._run)
        else:
            recipe = node_container(image, node, self._lab, self._run, self._program)
        started = _start(with_settings(recipe, given))
        about = engine().api.inspect_container(started)
        return int(about["State"]["Pid"])

    def _run_external(self, node: Node, holder: str) -> None:
        write_external_files(self._lab, node)
        given = self._settings_for([node]).external(node)
        recipe = external_container(given["image"], node, holder, self._lab, self._run)
        _start(with_settings(recipe, given))


def _start(recipe: Mapping[str, Any]) -> str:
    """Start a container and return its id. The SDK's `run` would ask a registry for a missing image."""
    container = engine().containers.create(**recipe)
    container.start()
    return str(container.id)


def _stop(container: Container) -> None:
    engine(LOOK_TIMEOUT_S).api.stop(container.id, timeout=STOP_S)
