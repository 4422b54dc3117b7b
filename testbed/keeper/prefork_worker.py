"""`python -m testbed.keeper.prefork_worker`: loads the nodes' program once, and forks a node whenever it is asked.

    {"orders": [{"name", "ns", "config", "stderr"}]}     pids {name: pid}, failed {name: reason}
    {"go": true}                                         (they are the keeper's children now, and begin)

JSON lines on standard input and output, in turns; the end of standard input ends it. To start a Python for each node
takes 100 ms of processor time and 12 MiB; a fork takes 2 ms, and most of the memory is shared.

The nodes of one question are children of a forker, a fork of this process only for them; when it ends, they become the
keeper's children. It ends when the keeper knows their pids: if it dies earlier, its nodes end, too.
"""

import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from nodes.runtime.main import load_unused_later
from nodes.runtime.main import main as run_node
from testbed.keeper.process_title import ProcessTitle
from testbed.places import ROLE_MARK
from testbed.syscalls import CLONE_NEWNET, die_with_parent, setns

COMMAND = (sys.executable, "-m", "nodes")  # the command line that a node shows
_INPUT, _OUTPUT, _ERRORS = 0, 1, 2
_GO = b"g"


def main() -> NoReturn:
    """Serve each question by a forker, until the end of standard input."""
    keeper = os.getppid()
    title = ProcessTitle()
    load_what_nodes_need()
    while line := sys.stdin.buffer.readline():
        worker = os.getpid()
        if not (pid := os.fork()):
            die_with_parent(worker)
            _serve(Forker(keeper, title), json.loads(line)["orders"])
        _, status = os.waitpid(pid, 0)
        failed = {"error": f"a forker has ended with {os.waitstatus_to_exitcode(status)}"}
        _answer({"ok": True} if status == 0 else {"ok": False, **failed})
    os._exit(0)


def _serve(forker: "Forker", orders: Sequence[dict[str, Any]]) -> NoReturn:
    """Fork the nodes, answer, and end when the keeper knows their pids."""
    for order in orders:
        forker.fork(order)
    _answer({"ok": True, "pids": forker.pids, "failed": forker.failed})
    if sys.stdin.buffer.readline():
        forker.release()
    os._exit(0)


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def load_what_nodes_need() -> None:
    """Load the modules of all kinds of nodes; then freeze them, so that no garbage collection unshares their memory."""
    load_unused_later()
    import nodes.overlay.broker.broker
    import nodes.overlay.methods
    import nodes.overlay.star
    import nodes.runtime.broker
    import nodes.runtime.control
    import nodes.runtime.sensor
    import nodes.runtime.subscriber  # noqa: F401

    gc.collect()
    gc.freeze()


class Forker:
    """Forks nodes that wait for their release."""

    def __init__(self, keeper: int, title: ProcessTitle) -> None:
        self.pids: dict[str, int] = {}
        self.failed: dict[str, str] = {}
        self._pid = os.getpid()
        self._title = title
        self._keeper = keeper
        self._gate, self._release = os.pipe()

    def fork(self, order: dict[str, Any]) -> None:
        """Fork one node, or record the reason of the failure."""
        name = order["name"]
        try:
            ns = os.open(order["ns"], os.O_RDONLY)
            stderr = os.open(order["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            pid = os.fork()
        except OSError as error:
            self.failed[name] = str(error)
            return
        if pid == 0:
            self._run_node(order, ns, stderr)
        self.pids[name] = pid
        os.close(ns)
        os.close(stderr)

    def release(self) -> None:
        """Let the nodes begin as soon as this process has ended."""
        os.write(self._release, _GO * len(self.pids))

    def _run_node(self, order: dict[str, Any], ns: int, stderr: int) -> NoReturn:
        """Run a node and exit. Nothing of the forker may run after it; report errors as the interpreter does."""
        code: object = 1
        try:
            self._enter_namespace(ns, stderr)
            self._title.change([*COMMAND, order["config"]], {ROLE_MARK: f"node:{order['name']}"})
            self._wait_for_release()
            code = run_node([order["config"]])
        except SystemExit as end:
            code = end.code
        except BaseException:  # noqa: BLE001
            sys.excepthook(*sys.exc_info())
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
        sys.stderr.flush()
        os._exit(code)

    def _enter_namespace(self, ns: int, stderr: int) -> None:
        """Give the node its own session, log and network namespace."""
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for now, place in ((nothing, _INPUT), (stderr, _OUTPUT), (stderr, _ERRORS)):
            os.dup2(now, place)
        setns(ns, CLONE_NEWNET)
        for done in (nothing, stderr, ns, self._release):
            os.close(done)

    def _wait_for_release(self) -> None:
        if os.read(self._gate, 1) != _GO:
            os._exit(1)
        os.close(self._gate)
        while os.getppid() == self._pid:  # children get a new parent after the process has ended
            time.sleep(0.001)
        die_with_parent(self._keeper)


if __name__ == "__main__":
    main()
