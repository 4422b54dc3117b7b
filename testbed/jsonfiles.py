"""JSON files that are either the old or the new version, never half of one."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any, indent: int | None = 2) -> None:
    """Write beside, then rename over. Without indent it is five times as fast."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w") as file:
            file.write(json.dumps(document, indent=indent) + "\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_json(path: Path) -> Any | None:
    """The document, or None if there is none or it is damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
