"""Where things are: a lab's state folder (short-lived, holds sockets) and a run's folder (kept, holds results).

The state folder's path IS the lab's identity: every process of a lab carries it in its environment (`MARK`),
every container in a label, every interface in its alias. `down` removes what carries the mark, and nothing else.
"""

import os
from dataclasses import dataclass
from pathlib import Path

MARK = "TESTBED_LAB_DIR"  # in the environment of each process of a lab
RUN_MARK = "TESTBED_RUN"
ROLE_MARK = "TESTBED_ROLE"  # keeper, relay, capture, node:<name>


def state_root() -> Path:
    """The folder that holds one folder per lab: $TESTBED_STATE, else /run/testbed (root) or the user's own."""
    if chosen := os.environ.get("TESTBED_STATE"):
        return Path(chosen).resolve()
    if os.geteuid() == 0:
        return Path("/run/testbed")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK):
        return Path(runtime) / "testbed"
    return Path(f"/tmp/testbed-{os.geteuid()}")


def captures_root() -> Path:
    """The folder that holds one folder per run: $TESTBED_CAPTURES, else ./captures."""
    return Path(os.environ.get("TESTBED_CAPTURES", "captures")).resolve()


@dataclass(frozen=True, slots=True)
class LabPlace:
    """A lab's state folder. Paths are short: a Unix socket's path has at most 107 characters."""

    folder: Path

    @classmethod
    def of(cls, name: str) -> "LabPlace":
        return cls(state_root() / name)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def record(self) -> Path:
        """lab.json: run id, run folder, backend, source file."""
        return self.folder / "lab.json"

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
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    @property
    def actions(self) -> Path:
        """actions.jsonl: the compiled timeline, one publication a line."""
        return self.folder / "actions.jsonl"

    @property
    def pcaps(self) -> Path:
        return self.folder / "pcap"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def pcap(self, link: str) -> Path:
        return self.pcaps / f"{link}.pcap"

    def log(self, node: str) -> Path:
        return self.logs / f"{node}.jsonl"


def marks(lab: LabPlace, run: str, role: str) -> dict[str, str]:
    """What a process of the lab carries in its environment."""
    return {MARK: str(lab.folder), RUN_MARK: run, ROLE_MARK: role}
