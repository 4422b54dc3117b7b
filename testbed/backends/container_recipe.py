"""A node's container as data: what the engine is asked to create. Pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docker.types import LogConfig, Mount

from testbed.backends.containers import labels_of
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import Node

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
