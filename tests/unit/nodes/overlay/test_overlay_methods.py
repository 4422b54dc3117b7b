"""The table of overlays is complete, and reading only its names imports little."""

import subprocess
import sys

from nodes.overlay import BETWEEN_BROKERS, METHODS
from nodes.overlay.methods import TOPIC_METHODS


def test_every_topic_method_can_be_chosen() -> None:
    assert tuple(TOPIC_METHODS) == BETWEEN_BROKERS
    assert tuple(METHODS) == ("star", *TOPIC_METHODS)


def test_a_sensor_loads_nothing_that_only_brokers_need() -> None:
    program = (
        "import sys, nodes.runtime.sensor, nodes.runtime.subscriber\n"
        "print(*(name for name in sys.modules if name.startswith('nodes.')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "nodes.overlay.edge" in loaded
    for part in ("broker", "topics", "skipgraph", "star"):
        assert not [name for name in loaded if name.startswith(f"nodes.overlay.{part}")]
    assert not [name for name in loaded if name.endswith(("_messages", "_codec"))]


def test_a_star_loads_nothing_that_connects_brokers() -> None:
    program = "import sys, nodes.overlay.star\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "nodes.overlay.broker.local" in loaded
    for part in (
        "nodes.overlay.broker.broker",
        "nodes.overlay.broker.joining",
        "nodes.overlay.broker.partition",
    ):
        assert part not in loaded
