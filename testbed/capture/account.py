"""A board's account of its capture: a small JSON file, renewed each second, for whoever collects.

A capture that goes on after a break goes on with its account; between which moments nobody listened stands in `gaps`.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


class Account:
    """Counts, the time that they are of, and what went wrong."""

    def __init__(self, path: Path, began_ns: int, goes_on: bool) -> None:
        self._path = path
        self._began_ns = began_ns
        self._gaps: list[list[int]] = []
        self._dropped_before = 0
        if goes_on and (before := _read(path)):
            self._began_ns = before["began_ns"]
            self._dropped_before = before["dropped"]
            self._gaps = [*before.get("gaps", []), [before["until_ns"], began_ns]]

    def write(
        self, counts: Mapping[str, int], now_ns: int, error: str = "", *, ended: bool = False
    ) -> bool:
        """Put it on the disk, whole; False if there is no room even for that."""
        data = {
            "packets": counts["packets"],
            "bytes": counts["bytes"],
            "dropped": counts["dropped"] + self._dropped_before,
            "error": error,
            "began_ns": self._began_ns,
            "until_ns": now_ns,
            "ended": ended,
            "gaps": self._gaps,
        }
        text = json.dumps(data).encode() + b"\n"
        fresh = self._path.with_name(f".{self._path.name}.new")
        try:
            fresh.write_bytes(text)
            fresh.replace(self._path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            return self._overwrite(text)
        return True

    def _overwrite(self, text: bytes) -> bool:
        """A full disk still takes what needs no more room than before: spaces at the end mean nothing in JSON."""
        try:
            with self._path.open("r+b", buffering=0) as file:
                padded = text.ljust(os.fstat(file.fileno()).st_size)
                return file.write(padded) == len(padded)
        except OSError:
            return False


def _read(path: Path) -> dict[str, Any] | None:
    """None if it is not there or torn."""
    try:
        data = json.loads(path.read_bytes())
        numbers = (data["began_ns"], data["until_ns"], data["dropped"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return data if all(isinstance(number, int) for number in numbers) else None
