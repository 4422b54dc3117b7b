"""Nodes as processes in network namespaces: no container engine, and no root where user namespaces are allowed."""

from collections.abc import Mapping, Sequence
from typing import Any

from testbed.backends.common.base import Done
from testbed.backends.common.local import LocalBackend
from testbed.backends.common.node_config import lab_secret, node_config
from testbed.keeper.client import Keeper, NodeProcess
from testbed.topology.model import Node


class NetnsBackend(LocalBackend):
    """One lab as processes."""

    name = "netns"

    def _create(self, nodes: Sequence[Node], done: Done) -> None:
        """Fork each node in its own namespace, where it waits at its gate."""
        processes, secret = [], lab_secret(self._lab)
        for node in nodes:
            control, log = self._lab.node_control(node.name), self._run.log(node.name)
            config = node_config(self._topology, node, self._run, str(control), str(log), secret)
            path = self._write(node, config)
            stderr = self._run.logs / f"{node.name}.stderr"
            processes.append(NodeProcess(node.name, path, stderr))
        pids, failed = self._keeper().fork(processes)
        for name in pids:
            done(name)
        self._raise_failures("could not be created", failed)

    def expect_starts(self) -> None:
        """Let the keeper start a prefork worker, which loads the nodes' program."""
        configs = (self._lab.node_config(node.name) for node in self._topology.ours)
        Keeper(self._lab).expect_forks(max(configs, key=lambda path: len(str(path))))

    def stop(self, nodes: Sequence[Node], done: Done) -> None:
        """Send SIGTERM, and SIGKILL to nodes that do not end in time."""
        self._raise_failures("did not end", self._end([node.name for node in nodes], done))

    def remove(self, names: Sequence[str], done: Done) -> None:
        """Remove links, processes and namespaces."""
        self._keeper().unwire(names)
        for name in names:
            self._lab.node_config(name).unlink(missing_ok=True)
            done(name)

    def _created(self, status: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(name for name, node in status["nodes"].items() if node["running"])
