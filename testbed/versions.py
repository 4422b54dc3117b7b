"""Which programs made a run: enough to make it again with the same."""

import platform
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version

from testbed import __version__

PACKAGES = ("websockets", "scapy", "pyarrow", "numpy", "pyspark")


@cache
def versions() -> dict[str, str]:
    """For the manifest. `nodes` is a digest of all that nodes run: the version stays the same for long."""
    return {
        "testbed": __version__,
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _installed(name))},
        "nodes": nodes_digest(),
    }


def nodes_digest() -> str:
    """Of the sources that go into nodes.pyz, by name and content."""
    from testbed.zipapp import sources

    digest = sha256()
    for name, content in sources():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
