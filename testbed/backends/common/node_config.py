"""node.json: the configuration of a node, written before it starts, and the fingerprint that detects changes."""

import ipaddress
import os
import secrets
from contextlib import suppress
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from typing import Any

from testbed.jsonfiles import read_json, write_json
from testbed.links.spec import LinkSpec
from testbed.places import LabPlace, RunPlace
from testbed.topology.model import Method, Node, NodeKind, Topology

BROKER_PORT = 9000
FINGERPRINT = "fingerprint"  # a field of node.json that nodes do not read
SEEDS = 3  # brokers through which the others join


def node_config(
    topology: Topology, node: Node, run: RunPlace, control: str, log: str, secret: str
) -> dict[str, Any]:
    """The contents of node.json; `control` and `log` are paths as the node itself sees them."""
    brokers = [topology.node(name) for name in node.brokers] or [
        broker for broker in topology.of_kind(NodeKind.BROKER) if broker.name != node.name
    ]
    seeds = [broker.name for broker in topology.of_kind(NodeKind.BROKER)[:SEEDS]]
    listen = {"host": node.address, "port": BROKER_PORT} if node.kind is NodeKind.BROKER else None
    return {
        "lab": topology.name,
        "run": run.run,
        "name": node.name,
        "number": node.number,
        "kind": node.kind,
        "control": control,
        "log": log,
        "seed": topology.seed,
        "overlay": _method(topology.overlay),
        "delivery": _method(topology.delivery_of(node)),
        "deliveries": _other_deliveries(topology) if node.kind is NodeKind.BROKER else {},
        "listen": listen,
        "brokers": [
            {"name": b.name, "number": b.number, "host": b.address, "port": BROKER_PORT}
            for b in brokers
        ],
        "seeds": [name for name in seeds if listen and name != node.name],
        "topics": list(node.topics),
        "dimensions": len(topology.space),
        "secret": secret,
        "journal": str(PurePath(control).with_name("journal"))
        if node.kind is NodeKind.SENSOR
        else None,
    }


def lab_secret(lab: LabPlace) -> str:
    """The secret that the nodes of this lab share; made when it is first needed."""
    try:
        return lab.secret.read_text()
    except FileNotFoundError:
        pass
    with NamedTemporaryFile("w", dir=lab.folder) as file:  # readable by the user alone
        file.write(secrets.token_hex(16))
        file.flush()
        # Atomically: several threads make nodes, and the first one decides.
        with suppress(FileExistsError):
            os.link(file.name, lab.secret)
    return lab.secret.read_text()


def write_node_files(lab: LabPlace, node: Node, config: dict[str, Any], fingerprint: str) -> Path:
    """Write the node's folder with its node.json; remove the control socket of a process that died."""
    lab.node(node.name).mkdir(parents=True, exist_ok=True)
    lab.node_control(node.name).unlink(missing_ok=True)
    path = lab.node_config(node.name)
    write_json(path, {**config, FINGERPRINT: fingerprint}, indent=None)
    return path


def stored_fingerprint(lab: LabPlace, node: str) -> str | None:
    """The fingerprint of the existing node; None if its node.json is missing or damaged."""
    document = read_json(lab.node_config(node))
    return document.get(FINGERPRINT) if isinstance(document, dict) else None


def link_spec(topology: Topology, node: Node, lab: LabPlace, run: RunPlace) -> LinkSpec:
    """The node's access link."""
    number = node.number
    return LinkSpec(
        node=node.name,
        number=number,
        address=node.address,
        prefix_length=ipaddress.ip_network(topology.prefix).prefixlen,
        mac="02:74:62:" + ":".join(f"{number >> shift & 0xFF:02x}" for shift in (16, 8, 0)),
        mtu=topology.profile(node.profile).mtu,
        alias=f"testbed {lab.folder} {run.run} {node.name}",
        behind=node.router,
        tcp=topology.tcp,
        beyond=topology.has_boards,
    )


def _other_deliveries(topology: Topology) -> dict[str, Any]:
    return {name: _method(chosen) for name, chosen in topology.other_deliveries.items()}


def _method(chosen: Method) -> dict[str, Any]:
    return {"method": chosen.method, "parameters": dict(chosen.parameters)}
