"""Paths of a lab's state folder (short-lived, holds sockets) and of a run's folder (permanent, holds results).

The state folder's path IS the lab's identity: every process of a lab carries it in its environment (`MARK`),
every container in a label, every interface in its alias. `down` removes all that carries the mark, and nothing else.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import InputError, TestbedError

MARK = "TESTBED_LAB_DIR"  # in the environment of each process of a lab
RUN_MARK = "TESTBED_RUN"
LAB_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")
ROLE_MARK = "TESTBED_ROLE"  # keeper, relay, capture, monitor, node:<name>


def state_root() -> Path:
    """The folder that holds one folder per lab: $TESTBED_STATE, else /run/testbed (root) or a folder of the user's."""
    if chosen := os.environ.get("TESTBED_STATE"):
        return Path(chosen).resolve()
    if os.geteuid() == 0:
        return Path("/run/testbed")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "testbed"
    return Path(f"/tmp/testbed-{os.geteuid()}")


def own_state_root() -> Path:
    """Create the state folder if it is missing; refuse it if others could put programs or sockets into it."""
    root = state_root()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root.lstat()
    foreign = about.st_uid != os.geteuid() or stat.S_ISLNK(about.st_mode)
    if foreign or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise TestbedError(
            f"{root} is not a folder that only you can write to",
            "remove it, or choose another with TESTBED_STATE",
        )
    return root


def captures_root() -> Path:
    """The folder that holds one folder per run: $TESTBED_CAPTURES, else ./captures."""
    return Path(os.environ.get("TESTBED_CAPTURES") or "captures").resolve()


@dataclass(frozen=True, slots=True)
class LabPlace:
    """A lab's state folder. Paths are short: a Unix socket's path has at most 107 characters."""

    folder: Path

    @classmethod
    def of(cls, name: str) -> "LabPlace":
        """The paths of the lab of this name; a name is never a path."""
        if not LAB_NAME.fullmatch(name):
            raise InputError(
                f"{name!r} cannot be a lab's name", "`testbed status` lists the labs that are up"
            )
        return cls(state_root() / name)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def record(self) -> Path:
        """lab.json: run id, run folder, backend, source file."""
        return self.folder / "lab.json"

    @property
    def secret(self) -> Path:
        """The secret that the lab's nodes share."""
        return self.folder / "secret"

    @property
    def keeper_socket(self) -> Path:
        return self.folder / "keeper" / "ctl"

    def node(self, name: str) -> Path:
        """The node's own folder: node.json, its control socket `ctl`, its disk."""
        return self.folder / "n" / name

    def node_config(self, name: str) -> Path:
        return self.node(name) / "node.json"

    def node_control(self, name: str) -> Path:
        return self.node(name) / "ctl"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A run's folder."""

    folder: Path

    @property
    def run(self) -> str:
        return self.folder.name

    @property
    def manifest(self) -> Path:
        return self.folder / "run.json"

    @property
    def topology(self) -> Path:
        return self.folder / "topology.yaml"

    @property
    def scenario(self) -> Path:
        """The scenario, if it came from a file of its own."""
        return self.folder / "scenario.yaml"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    @property
    def planned(self) -> Path:
        """planned.jsonl: the compiled timeline, one publication a line."""
        return self.folder / "planned.jsonl"

    @property
    def outputs(self) -> Path:
        """exec/: the output of the scenario's commands."""
        return self.folder / "exec"

    @property
    def hazard(self) -> Path:
        """hazard.json: the course of the scenario's hazard."""
        return self.folder / "hazard.json"

    @property
    def published(self) -> Path:
        """published.jsonl: the publications as recorded, one a line."""
        return self.folder / "published.jsonl"

    @property
    def machine(self) -> Path:
        """machine.jsonl: the load of the machine, one row a second."""
        return self.folder / "machine.jsonl"

    @property
    def pcaps(self) -> Path:
        return self.folder / "pcap"

    @property
    def trace(self) -> Path:
        """trace/: packets of a simulated run, which has no pcaps."""
        return self.folder / "trace"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def pcap(self, link: str) -> Path:
        return self.pcaps / f"{link}.pcap"

    def log(self, node: str) -> Path:
        return self.logs / f"{node}.jsonl"


def marks(lab: LabPlace, run: str, role: str) -> dict[str, str]:
    """The marks of the lab in the environment of its processes."""
    return {MARK: str(lab.folder), RUN_MARK: run, ROLE_MARK: role}
