"""The prefork worker and the modules that forked nodes share."""

import json
import subprocess
import sys

MAKE_BROKERS = """
import sys
from random import Random
from nodes.overlay import METHODS
from nodes.overlay.base import Station
from testbed.keeper.prefork_worker import load_what_nodes_need

load_what_nodes_need()
before = set(sys.modules)
for make in METHODS.own.values():
    make(Station("broker", 1), {}, Random(1))
print(*sorted(set(sys.modules) - before))
"""


def test_brokers_load_nothing_after_their_fork() -> None:
    output = subprocess.check_output([sys.executable, "-c", MAKE_BROKERS], text=True)
    assert output.split() == []


def test_a_worker_forks_as_often_as_it_is_asked_and_ends_with_its_input() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "testbed.keeper.prefork_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker:
        for name in ("a", "b"):
            order = {"name": name, "ns": "/no/such/place", "config": "", "stderr": "/dev/null"}
            answers = []
            for question in ({"orders": [order]}, {"go": True}):
                worker.stdin.write(json.dumps(question) + "\n")
                worker.stdin.flush()
                answers.append(json.loads(worker.stdout.readline()))
            assert answers[0]["pids"] == {}
            assert "No such file" in answers[0]["failed"][name]
            assert answers[1] == {"ok": True}
        worker.stdin.close()
        assert worker.wait(30) == 0
