"""A node loads the modules that it uses, and no others."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.runtime.main import FAILED, UNUSED, main

GOOD = {
    "lab": "slope",
    "run": "r1",
    "name": "c1",
    "number": 3,
    "kind": "subscriber",
    "control": "/run/ctl",
    "seed": 7,
    "overlay": {"method": "star", "parameters": {}},
    "delivery": {"method": "fifo", "parameters": {}},
    "deliveries": {},
    "listen": None,
    "brokers": [{"name": "b1", "number": 1, "host": "10.77.0.1", "port": 7000}],
    "seeds": [],
    "topics": [],
    "dimensions": 0,
    "secret": "of the slope",
    "journal": None,
}

LOAD = """
import json, sys
from nodes.runtime.main import load_unused_later
load_unused_later()
import nodes.runtime.broker, nodes.runtime.client, nodes.runtime.control
lazy = [name for name, module in sys.modules.items() if type(module).__name__ == "_LazyModule"]
import importlib.metadata
version = importlib.metadata.version("websockets")
print(json.dumps({"put off": lazy, "loaded": [*sys.modules], "version": version}))
"""


def test_a_node_does_not_start_with_a_congestion_control_that_its_kernel_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    handler = signal.getsignal(signal.SIGINT)
    file = tmp_path / "node.json"
    file.write_text(json.dumps({**GOOD, "tcp": "unheard", "log": str(tmp_path / "log")}))
    try:
        assert main([str(file)]) == FAILED
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr().err.startswith(
        "c1: this kernel refuses the TCP congestion control unheard"
    )
    assert not (tmp_path / "log").exists()


def test_modules_that_only_the_library_imports_are_loaded_later(repository: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=repository, capture_output=True, text=True, check=True
    )
    found = json.loads(process.stdout)
    assert set(found["put off"]) == UNUSED, "the WebSocket library has begun to use one of them"
    assert "http.client" not in found["loaded"]
    assert found["version"], "and it loads when it is needed"
