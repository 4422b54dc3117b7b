"""The texts that a sweep is about: all its cells must have been made from the same ones."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from testbed.topology.files import text_of


def digest_of(paths: Iterable[Path | None]) -> str:
    """Of what stands in these files now; None is no file."""
    texts = (text_of(path) for path in paths if path is not None)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
