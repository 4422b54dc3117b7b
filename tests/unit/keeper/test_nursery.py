"""What nodes share that are born together, and what they are born in."""

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
for make in METHODS.values():
    make(Station("broker", 1), {}, Random(1))
print(*sorted(set(sys.modules) - before))
"""


def test_brokers_load_nothing_after_their_birth() -> None:
    said = subprocess.check_output([sys.executable, "-c", MAKE_BROKERS], text=True)
    assert said.split() == []


def test_it_bears_as_often_as_it_is_asked_and_ends_when_nobody_asks_any_more() -> None:
    nursery = subprocess.Popen(
        [sys.executable, "-m", "testbed.keeper.prefork_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    with nursery:
        for name in ("a", "b"):
            order = {"name": name, "ns": "/no/such/place", "config": "", "stderr": "/dev/null"}
            answers = []
            for question in ({"orders": [order]}, {"go": True}):
                nursery.stdin.write(json.dumps(question) + "\n")
                nursery.stdin.flush()
                answers.append(json.loads(nursery.stdout.readline()))
            assert answers[0]["pids"] == {}
            assert "No such file" in answers[0]["failed"][name]
            assert answers[1] == {"ok": True}
        nursery.stdin.close()
        assert nursery.wait(30) == 0
