"""Nodes as processes in network namespaces: no container engine, and no root where user namespaces are allowed."""

import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.backends.base import Done
from testbed.backends.local import LocalBackend
from testbed.backends.node_files import node_config, write_node_files
from testbed.keeper.client import Program
from testbed.keeper.processes import POLITE_S
from testbed.topology.model import Node

_KILL_S = 5.0
_PAUSE_S = 0.02


class NetnsBackend(LocalBackend):
    """One lab as processes."""

    name = "netns"

    def create(self, nodes: Sequence[Node], done: Done) -> None:
        """A namespace and a process each, waiting at its gate."""
        self._check_before_creating()
        programs = []
        for node in nodes:
            control, log = self._lab.node_control(node.name), self._run.log(node.name)
            config = node_config(self._topology, node, self._run, str(control), str(log))
            path = write_node_files(self._lab, node, config)
            stderr = self._run.logs / f"{node.name}.stderr"
            programs.append(
                Program(node.name, (sys.executable, str(self._program), str(path)), stderr, {})
            )
        pids, failed = self._keeper().spawn(programs)
        for name in pids:
            done(name)
        self._complain("could not be created", failed)

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """SIGTERM, and SIGKILL for those that do not heed it."""
        ending = {node.name for node in nodes}
        for number, patience_s in ((signal.SIGTERM, POLITE_S), (signal.SIGKILL, _KILL_S)):
            ending = self._end(ending, number, patience_s, done)
        self._complain("did not end", dict.fromkeys(sorted(ending), "it survived SIGKILL"))

    def _end(self, ending: set[str], number: int, patience_s: float, done: Done) -> set[str]:
        """Those that still live after the signal and some patience."""
        keeper = self._keeper()
        known = keeper.status()["nodes"].keys()
        keeper.signal(sorted(ending & known), number)
        deadline = time.monotonic() + patience_s
        while ending:
            alive = self._living()
            for name in sorted(ending - alive):
                done(name)
            ending &= alive
            if time.monotonic() > deadline:
                break
            if ending:
                time.sleep(_PAUSE_S)
        return ending

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Links, processes and namespaces."""
        self._keeper().unwire(names)
        for name in names:
            self._lab.node_config(name).unlink(missing_ok=True)
            done(name)

    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(name for name, node in status["nodes"].items() if node["running"])
