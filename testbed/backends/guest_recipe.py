"""A guest's containers as data: what the engine is asked to create, and the files that it is given.

Any image must do, also one without a shell that could wait at a gate. So a small container of our own, the holder,
has the network namespace; its link is made, captured and raised; then the guest starts inside that namespace.
"""

from pathlib import Path
from typing import Any

from docker.types import LogConfig, Mount

from testbed.backends.containers import GUEST, ROLE_LABEL, labels_of
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import External, Node, Topology

HOSTS = "/etc/hosts"
_LOGS_KEPT = {"max-size": "20m", "max-file": "1"}


def holder_container(image: str, node: Node, lab: LabPlace, run: RunPlace) -> dict[str, Any]:
    """Keeps a network namespace, and does nothing."""
    return {
        "image": image,
        "command": ["sleep", "infinity"],
        "name": f"{run.run}-{node.name}",
        "hostname": node.name,
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "labels": labels_of(node.name, lab, run),
    }


def guest_container(
    image: str, node: Node, holder: str, lab: LabPlace, run: RunPlace
) -> dict[str, Any]:
    """The program itself: with the rights that its image expects, but without any way out of the lab."""
    external = external_of(node)
    files = _files(lab, node)
    mounts = [
        Mount(inside, str(path), type="bind", read_only=True) for inside, path in files.items()
    ]
    if HOSTS not in files:
        mounts.append(Mount(HOSTS, str(_hosts(lab, node)), type="bind"))  # some write to theirs
    return {
        "image": image,
        "command": list(external.command) or None,
        "name": f"{run.run}-{node.name}-guest",
        "network_mode": f"container:{holder}",
        "environment": dict(external.env),
        "security_opt": ["no-new-privileges"],
        "log_config": LogConfig(type=LogConfig.types.JSON, config=_LOGS_KEPT),
        "mounts": mounts,
        "labels": {**labels_of(node.name, lab, run), ROLE_LABEL: GUEST},
    }


def write_guest_files(lab: LabPlace, node: Node) -> None:
    """The files that the topology gives to the guest."""
    contents = dict(external_of(node).files)
    for inside, path in _files(lab, node).items():
        _write(path, contents[inside])


def tell_names(lab: LabPlace, topology: Topology) -> None:
    """Every guest knows all nodes by name; those that run learn of nodes that came later."""
    lines = [f"{node.address} {node.name}\n" for node in topology.nodes]
    names = "".join(["127.0.0.1 localhost\n", *lines])
    for node in topology.nodes:
        if node.external:
            _write(_hosts(lab, node), names)


def external_of(node: Node) -> External:
    """What an external node runs."""
    assert node.external is not None, f"{node.name} is no external node"
    return node.external


def _hosts(lab: LabPlace, node: Node) -> Path:
    return lab.node(node.name) / "hosts"


def _files(lab: LabPlace, node: Node) -> dict[str, Path]:
    folder = lab.node(node.name) / "files"
    return {inside: folder / str(n) for n, (inside, _) in enumerate(external_of(node).files)}


def _write(path: Path, content: str) -> None:
    """In place: a container that has the file sees what it says now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    path.chmod(0o644)  # the guest may be any user
