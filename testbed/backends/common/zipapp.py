"""nodes.pyz: everything a node needs in one file, for any Python from 3.11 on.

Holds `nodes`, the pure Python of `websockets` (without its C accelerator, which would tie the file to one processor),
that library's licence, and the packages whose delivery and overlay methods a node may need (`nodes.plugins`). Next to
each source stands its byte code for the Python that built the file: a node then starts in half the time and with 2 MiB
less. Another version of Python ignores it and compiles the source. The same sources always give the same bytes.
"""

import importlib.util
import io
import marshal
import os
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import nodes
from nodes.plugins import DELIVERIES, LIST, OVERLAYS, Plugin, declared

SHEBANG = b"#!/usr/bin/env python3\n"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip file can store
MAIN = b'"""A node of the testbed: python3 nodes.pyz node.json"""\n\nimport nodes.__main__  # noqa: F401\n'
# Parts of websockets that no node loads.
LEFT_OUT = ("websockets/legacy/", "websockets/sync/", "websockets/trio/")
_UNCHECKED_HASH = 1  # flags of a .pyc that is valid without looking at its source (PEP 552)


def build(target: Path) -> Path:
    """Write the file (whole or not at all) and return its path."""
    return pack(target, contents())


def pack(target: Path, entries: Iterable[tuple[str, bytes]]) -> Path:
    """A zipapp of these entries, by name and content."""
    data = io.BytesIO()
    data.write(SHEBANG)
    with zipfile.ZipFile(data, "a", zipfile.ZIP_STORED) as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    fresh.write_bytes(data.getvalue())
    fresh.chmod(0o755)
    fresh.replace(target)
    return target


def contents() -> Iterator[tuple[str, bytes]]:
    """Name and content of each entry, sorted by source."""
    yield from with_byte_code(sources())
    yield from licence("websockets")


def with_byte_code(listed: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Each source, followed by its byte code."""
    for name, source in listed:
        yield name, source
        if (code := _byte_code(name, source)) is not None:
            yield name + "c", code


def licence(library: str) -> Iterator[tuple[str, bytes]]:
    """The licence that a library is installed with."""
    for path in distribution(library).files or ():
        if path.name.startswith("LICENSE"):
            yield f"licenses/{library}/LICENSE", Path(str(path.locate())).read_bytes()


def sources() -> list[tuple[str, bytes]]:
    """Name and content of each source, sorted."""
    return sorted(_sources())


def _sources() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", MAIN
    for root in (Path(nodes.__path__[0]), folder_of("websockets")):
        for path in root.rglob("*.py"):
            name = path.relative_to(root.parent).as_posix()
            if not name.startswith(LEFT_OUT):
                yield name, path.read_bytes()
    yield from _sources_of_plugins({group: declared(group) for group in (DELIVERIES, OVERLAYS)})


def _sources_of_plugins(methods: dict[str, tuple[Plugin, ...]]) -> Iterator[tuple[str, bytes]]:
    """The modules of other packages' methods, and the list by which a node finds them."""
    rows = {group: [tuple(plugin) for plugin in found] for group, found in methods.items() if found}
    if not rows:
        return
    yield f"{LIST}.py", f'"""Methods of other packages."""\n\nMETHODS = {rows!r}\n'.encode()
    for top in sorted(
        {plugin.value.split(":")[0].split(".")[0] for found in methods.values() for plugin in found}
    ):
        yield from _sources_of_module(top)


def _sources_of_module(top: str) -> Iterator[tuple[str, bytes]]:
    """A module of one file, or all modules of a package."""
    found = importlib.util.find_spec(top)
    if found is None or found.origin is None:  # `testbed plugins` reports it
        return
    path = Path(found.origin)
    if found.submodule_search_locations is None:
        yield path.name, path.read_bytes()
        return
    for source in path.parent.rglob("*.py"):
        yield source.relative_to(path.parent.parent).as_posix(), source.read_bytes()


def folder_of(library: str) -> Path:
    """The folder where a library is installed, without loading it."""
    found = importlib.util.find_spec(library)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _byte_code(name: str, source: bytes) -> bytes | None:
    """A .pyc as `zipimport` takes it; None if this Python cannot write it reproducibly."""
    code = compile(source, name, "exec", dont_inherit=True)
    try:
        # Version 2 has no references to earlier objects, whose presence depends on what else the process holds.
        body = marshal.dumps(code, 2)
    except ValueError:
        return None
    flags = _UNCHECKED_HASH.to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + body
