"""The peer of the docker backend: docker-compose with the very same containers on a plain bridge, without shaping.

Image, command, rights and mounts are those of `testbed.backends.docker.backend`. Each container's process starts
and waits at its gate; here it stays closed, no link is wired, shaped or captured, and nothing waits for connections.
"""

import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.support.harness import timed
from testbed.backends.common.node_config import lab_secret, node_config, write_node_files
from testbed.backends.common.zipapp import build
from testbed.backends.docker.backend import INSIDE, node_container
from testbed.errors import MissingCapability, TestbedError
from testbed.places import LabPlace, RunPlace
from testbed.topology import load

STARTED_S = 300.0
PATIENCE_S = 900


class Compose:
    """The containers of a topology as a docker-compose project."""

    def __init__(self, topology: Path, folder: Path, image: str, env: Mapping[str, str]) -> None:
        if shutil.which("docker-compose") is None:
            raise MissingCapability(
                "docker-compose is missing", "`apt-get install docker-compose` has the peer"
            )
        self._topology = load(topology)
        self._folder = folder
        self._image = image
        # Above 64 services docker-compose 1.29 waits for itself without end, unless it may do more at once.
        # All at once, each start takes minutes, and it would give up on the engine after one.
        self._env = {
            **env,
            "COMPOSE_PARALLEL_LIMIT": str(2 * len(self._topology.nodes) + 2),
            "COMPOSE_HTTP_TIMEOUT": str(PATIENCE_S),
        }
        self._run = RunPlace(folder / "run")
        folder.mkdir()

    def up(self) -> float:
        """Seconds until `docker-compose up -d` returns."""
        self._write_files()
        took = timed(["docker-compose", "up", "-d"], self._env, self._folder)
        self._wait_until_started()
        return took

    def down(self) -> float:
        """Seconds until `docker-compose down` returns."""
        return timed(["docker-compose", "down"], self._env, self._folder)

    def clear(self) -> None:
        """Remove the rest of the project, after a failure or an interrupt."""
        with suppress(TestbedError):
            self.down()

    def _write_files(self) -> None:
        shutil.rmtree(self._run.folder, ignore_errors=True)
        self._run.logs.mkdir(parents=True)
        lab = LabPlace(self._folder / "lab")
        lab.folder.mkdir(exist_ok=True)
        program = build(self._folder / "nodes.pyz")
        services = {}
        for node in self._topology.nodes:
            log = f"{INSIDE}/logs/{node.name}.jsonl"
            control, secret = f"{INSIDE}/node/ctl", lab_secret(lab)
            config = node_config(self._topology, node, self._run, control, log, secret)
            write_node_files(lab, node, config, "")
            services[node.name] = service(
                node_container(self._image, node, lab, self._run, program)
            )
        document = {"version": "3.7", "services": services}
        (self._folder / "docker-compose.yml").write_text(json.dumps(document))

    def _wait_until_started(self) -> None:
        """Wait until every process really runs; this is not part of the measured time."""
        end = time.monotonic() + STARTED_S
        waiting = [self._run.log(node.name) for node in self._topology.nodes]
        while waiting := [log for log in waiting if not log.exists() or not log.stat().st_size]:
            if time.monotonic() > end:
                raise TestbedError(f"not started by docker-compose: {waiting[0].stem}")
            time.sleep(0.1)


def service(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """One of our containers as a service, without our own network and labels."""
    return {
        "image": recipe["image"],
        "command": [part.replace("$", "$$") for part in recipe["command"]],
        "hostname": recipe["hostname"],
        "read_only": recipe["read_only"],
        "cap_drop": recipe["cap_drop"],
        "security_opt": recipe["security_opt"],
        "logging": {"driver": recipe["log_config"].type},
        "volumes": [
            {
                "type": mount["Type"],
                "source": mount["Source"],
                "target": mount["Target"],
                "read_only": mount["ReadOnly"],
            }
            for mount in recipe["mounts"]
        ],
    }
