"""A node loads the modules that it uses, and no others."""

import json
import subprocess
import sys
from pathlib import Path

from nodes.runtime.main import UNUSED

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


def test_modules_that_only_the_library_imports_are_loaded_later(repository: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=repository, capture_output=True, text=True, check=True
    )
    found = json.loads(process.stdout)
    assert set(found["put off"]) == UNUSED, "the WebSocket library has begun to use one of them"
    assert "http.client" not in found["loaded"]
    assert found["version"], "and it loads when it is needed"
