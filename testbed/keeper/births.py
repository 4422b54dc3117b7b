"""Nodes of our own as the keeper's children: forked by a nursery, which ends as soon as they are born."""

from collections.abc import Callable, Sequence
from typing import Any

from testbed.keeper.held_process import HeldProcess
from testbed.keeper.naming import room_for
from testbed.keeper.workers import Worker

Make = Callable[[str], Worker]  # a nursery with an argument that makes room for others


class Births:
    """A nursery that is getting ready; it loads what nodes need while their namespaces are made."""

    def __init__(self, make: Make, configs: Sequence[str]) -> None:
        self._nursery = make(room_for([max(configs, key=len, default="")]))

    def of(self, orders: Sequence[dict[str, Any]]) -> tuple[dict[str, HeldProcess], dict[str, str]]:
        """The processes by name, and reasons for those that failed."""
        born: dict[str, HeldProcess] = {}
        try:
            answer = self._nursery.ask({"orders": list(orders)})
            for name, pid in answer["pids"].items():
                born[name] = HeldProcess(pid, ours=True)
        except BaseException:
            self._nursery.end()
            for process in born.values():
                process.close()
            raise
        self._nursery.let_go()
        return born, answer["failed"]
