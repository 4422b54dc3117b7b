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
    GUEST,
    Box,
    boxes,
    in_parallel,
    labels_of,
    remove,
    run_inside,
)
from testbed.backends.docker.engine import LOOK_TIMEOUT_S, engine, engine_talk
from testbed.backends.docker.external_nodes import (
    guest_container,
    guests_of,
    holder_container,
    save_output,
    tell_names,
    wait_for_ports,
    write_guest_files,
)
from testbed.backends.docker.images import Workshop
from testbed.backends.docker.node_limits import Fittings, details, fit
from testbed.backends.docker.removal import clear_away
from testbed.errors import MissingCapability, TestbedError
from testbed.keeper.processes import POLITE_S
from testbed.links.namespaces import privileged
from testbed.places import LabPlace, RunPlace
from testbed.progress import Emit, Warned
from testbed.topology.model import Node, Topology

# A node's container as data: what the engine is asked to create. Pure.


INSIDE = "/testbed"
# The name is an argument of the shell, never part of its text.
COMMAND = f'exec python3 -IS {INSIDE}/nodes.pyz {INSIDE}/node/node.json 2>"{INSIDE}/logs/$0.stderr"'


def node_container(
    image: str, node: Node, lab: LabPlace, run: RunPlace, program: Path
) -> dict[str, Any]:
    """A node of ours: no network yet, no rights, nothing to write to but its own folder and the logs."""
    return {
        "image": image,
        "command": ["sh", "-c", COMMAND, node.name],
        "name": f"{run.run}-{node.name}",
        "hostname": node.name,
        "network_mode": "none",
        # Says it once more: without it the engine runs its own 100 MB program as a hook in each container's start, only
        # to find that there is nothing to connect. That is half of the processor time of a start.
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


def fitted(recipe: Mapping[str, Any], fittings: Mapping[str, Any]) -> dict[str, Any]:
    """The container with its image, its platform and its limits; labels add up."""
    return {**recipe, **fittings, "labels": {**recipe["labels"], **fittings.get("labels", {})}}


STOP_S = math.ceil(POLITE_S)  # the engine counts in seconds


class DockerBackend(LocalBackend):
    """One lab as containers."""

    name = "docker"

    def __init__(self, lab: LabPlace, run: RunPlace, topology: Topology, emit: Emit) -> None:
        super().__init__(lab, run, topology)
        self._emit = emit
        self._fittings: Fittings | None = None

    def prepare(self, topology: Topology) -> None:
        """An engine and the images first: without them there is no point in a core."""
        if not privileged():
            raise MissingCapability(
                "the docker backend puts links into containers, which takes root",
                "use sudo, or --backend netns",
            )
        check_socket_paths(self._lab, topology)
        self._fitted(topology.here)
        super().prepare(topology)
        build(self._program)

    def _create(self, nodes: Sequence[Node], done: Done) -> None:
        """Containers in place of those that died, each waiting at its gate, their namespaces known to the keeper."""
        self._fitted(nodes)
        tell_names(self._lab, self._topology)
        failed = self._clear(self._boxes_of(node.name for node in nodes))
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
        self._complain("could not be created", {**failed, **not_run})

    def start(self, nodes: Sequence[Node], done: Done) -> None:
        """Open the gates; guests, which know no gate, begin to exist only now."""
        guests = [node for node in nodes if node.external]
        servers = [node for node in guests if node.external and node.external.port]
        failed = self._start_guests(servers, done)
        if len(servers) < len(guests):  # many a client gives up if nobody listens yet
            wait_for_ports(self._lab, [node for node in servers if node.name not in failed])
            clients = [node for node in guests if node not in servers]
            failed |= self._start_guests(clients, done)
        ours = [node for node in nodes if node.ours]
        self._complain("did not start", {**failed, **self._open_gates(ours, done)})

    def _start_guests(self, nodes: Sequence[Node], done: Done) -> dict[str, str]:
        """Each in the namespace that its holder keeps for it, in place of one that has ended; reasons of failures."""
        if not nodes:
            return {}
        self._fitted(nodes)
        found = self._boxes_of(node.name for node in nodes)
        failed = self._clear(box for box in found if box.role == GUEST)
        holders = {box.node: box.id for box in found if box.role != GUEST}
        lost = (node.name for node in nodes if node.name not in holders)
        failed |= dict.fromkeys(lost, "the container that held its network has gone")
        wanted = {
            node.name: (node, holders[node.name]) for node in nodes if node.name not in failed
        }
        begun, not_begun = in_parallel(wanted, lambda pair: self._run_guest(*pair))
        for name in begun:
            done(name)
        return failed | not_begun

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """SIGTERM, and SIGKILL for those that do not heed it. Guests' last words are kept.

        Nodes of ours get their signals from the keeper: through the engine each would cost a run of `runc`.
        """
        failed = self._end([node.name for node in nodes if node.ours], done)
        theirs = {node.name for node in nodes if node.external}
        guests = (
            {box.node: box for box in guests_of(self._lab) if box.node in theirs} if theirs else {}
        )
        _, not_ended = in_parallel(guests, _stop)
        for name in theirs - not_ended.keys():
            done(name)
        for guest in guests.values():
            self._keep_output(guest)
        self._complain("did not end", {**failed, **not_ended})

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Links, then containers."""
        self._keeper().unwire(names)
        tell_names(self._lab, self._topology)
        failed = self._clear(self._boxes_of(names))
        for name in names:
            self._lab.node_config(name).unlink(missing_ok=True)
            if name not in failed:
                done(name)
        self._complain("could not be removed", failed)

    def execute(self, node: Node, command: Sequence[str], output: Path) -> Ended:
        """In the node's container."""
        found = guests_of(self._lab) if node.external else self._holders().values()
        box = next((each for each in found if each.node == node.name), None)
        if box is None:
            raise TestbedError(f"{node.name} has no container", "`testbed up` completes the lab")
        return run_inside(box, command, output)

    def details(self) -> dict[str, Any]:
        """Also which engine, images and limits, as far as they can still be asked."""
        found = super().details()
        try:
            with engine_talk():
                found["docker"] = engine().version()["Version"]
            found |= details(self._lab)
        except TestbedError:
            return found
        return found

    def destroy(self) -> list[str]:
        """Processes that carry the mark, then containers that carry the label."""
        return clear_away(self._lab, self.name)

    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        """Those whose container runs, and is the one whose namespace the keeper holds; a router is the keeper's own."""
        running = {name for name, box in self._holders().items() if box.state == "running"}
        return frozenset(
            name
            for name, kept in status["nodes"].items()
            if kept["pid"] is None or (kept["running"] and name in running)
        )

    def _linkable(self, status: Mapping[str, Any], created: frozenset[str]) -> frozenset[str]:
        """A container takes its namespace with it, and so its link."""
        return created

    def _fitted(self, nodes: Sequence[Node]) -> Fittings:
        """Images and limits for at least these nodes."""
        if self._fittings is None or not self._fittings.covers(nodes):
            workshop = Workshop(self._emit, self._lab, self._run.run)
            self._fittings = fit(nodes, workshop)
        return self._fittings

    @property
    def _program(self) -> Path:
        """What each node runs: our nodes' program as it was when the lab was prepared."""
        return self._lab.folder / "nodes.pyz"

    def _holders(self) -> dict[str, Box]:
        """What holds each node's namespace: the node itself, or a guest's holder."""
        return {box.node: box for box in boxes(self._lab) if box.role != GUEST}

    def _boxes_of(self, names: Iterable[str]) -> list[Box]:
        """All containers of these nodes."""
        wanted = set(names)
        return [box for box in boxes(self._lab) if box.node in wanted]

    def _clear(self, found: Iterable[Box]) -> dict[str, str]:
        """Remove containers; what guests have written is kept. Reasons, by node, of those that stay."""
        going = {box.name: box for box in found}
        for box in going.values():
            if box.role == GUEST:
                self._keep_output(box)
        _, failed = in_parallel(going, remove)
        return {going[name].node: reason for name, reason in failed.items()}

    def _keep_output(self, guest: Box) -> None:
        try:
            save_output(guest, self._run)
        except (TestbedError, OSError) as error:
            self._emit(Warned(f"what {guest.node} has written could not be kept: {error}"))

    def _started(self, created: frozenset[str]) -> frozenset[str]:
        guests = {node.name for node in self._topology.nodes if node.external}
        found = guests_of(self._lab) if guests else []
        running = {box.node for box in found if box.state == "running"}
        return super()._started(created - guests) | (running & created)

    def _run_container(self, node: Node) -> int:
        """Start a node's container; the pid of its process."""
        control, log = f"{INSIDE}/node/ctl", f"{INSIDE}/logs/{node.name}.jsonl"
        secret = lab_secret(self._lab)
        config = node_config(self._topology, node, self._run, control, log, secret)
        self._write(node, config)
        fittings = self._fitted([node])
        given = fittings.holder() if node.external else fittings.ours(node)
        image = given["image"]
        if node.external:
            recipe = holder_container(image, node, self._lab, self._run)
        else:
            recipe = node_container(image, node, self._lab, self._run, self._program)
        started = _start(fitted(recipe, given))
        about = engine().api.inspect_container(started)
        return int(about["State"]["Pid"])

    def _run_guest(self, node: Node, holder: str) -> None:
        write_guest_files(self._lab, node)
        given = self._fitted([node]).guest(node)
        recipe = guest_container(given["image"], node, holder, self._lab, self._run)
        _start(fitted(recipe, given))


def _start(recipe: Mapping[str, Any]) -> str:
    """Its id. Not the SDK's `run`, which goes to a registry for an image that is missing."""
    container = engine().containers.create(**recipe)
    container.start()
    return str(container.id)


def _stop(box: Box) -> None:
    engine(LOOK_TIMEOUT_S).api.stop(box.id, timeout=STOP_S)
