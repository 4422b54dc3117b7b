"""What nodes share that are born together."""

import subprocess
import sys

MAKE_BROKERS = """
import sys
from random import Random
from nodes.overlay import METHODS
from nodes.overlay.base import Station
from testbed.keeper.nursery import load_what_nodes_need

load_what_nodes_need()
before = set(sys.modules)
for make in METHODS.values():
    make(Station("broker", 1), {}, Random(1))
print(*sorted(set(sys.modules) - before))
"""


def test_brokers_load_nothing_after_their_birth() -> None:
    said = subprocess.check_output([sys.executable, "-c", MAKE_BROKERS], text=True)
    assert said.split() == []
