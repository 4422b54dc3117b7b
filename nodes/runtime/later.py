"""Modules that the WebSocket library imports for what no node does: reading its own version, looking for a web proxy.

Each node would spend a fifth of its start and half a MiB of memory on them. They are loaded when they are first
used, that is, never.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

UNUSED = frozenset({"importlib.metadata", "urllib.request"})


class _Later:
    """Finds these modules as usual, but puts off loading them."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in UNUSED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def load_unused_later() -> None:
    """To be called before the library is imported."""
    sys.meta_path.insert(0, _Later)
