"""JSON files that are either the old or the new version, never half of one."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any) -> None:
    """Write beside, then rename over."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("w") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_json(path: Path) -> Any | None:
    """The document, or None if there is none or it is damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
