"""Read files of lines that another process still writes: the last line may be there in part."""

import json
from pathlib import Path
from typing import Any


def complete_lines(path: Path) -> list[str]:
    """The lines of the file that end with a newline, without it; none if there is no such file yet."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return text.split("\n")[:-1]


def records(path: Path) -> list[dict[str, Any]]:
    """The JSON objects in the file's complete lines."""
    return [json.loads(line) for line in complete_lines(path)]
