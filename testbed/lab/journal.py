"""The journal: each step is written before it is done, so that a crash leaves a record of the unfinished step."""

import json
import os
import time
from pathlib import Path
from typing import Any


class Journal:
    """Appends one JSON line per step, on disk before `write` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, **entry: Any) -> None:
        line = json.dumps({"t": time.time_ns(), **entry}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
