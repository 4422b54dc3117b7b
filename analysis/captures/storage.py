"""Opens files on this machine, or in an object store that Arrow knows by its address (s3://, gs://, abfs://, hdfs://).

Local paths are opened as files, which is fastest. An address is opened by the process that reads it, which may be a
task on a worker, with the credentials of that machine.
"""

import fnmatch
import glob
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from analysis.errors import AnalysisError

LOCAL = "file://"
WILD = "*?["


class _Store(NamedTuple):
    """A file system, and how to write a path in it as an address."""

    files: Any
    path: str
    before: str
    after: str

    def address(self, path: str) -> str:
        return self.before + path + self.after


def plain(path: str) -> str:
    """The path without `file://`: file:///x is /x."""
    return path.removeprefix(LOCAL)


def is_address(path: str) -> bool:
    """Whether the path is in an object store."""
    return "://" in path and not path.startswith(LOCAL)


def open_file(path: str) -> Any:
    """Open a file for random access: `read`, `readinto`, `seek`, `close`. OSError if it cannot be opened."""
    if not is_address(path):
        return Path(plain(path)).open("rb", buffering=0)
    store = _store(path)
    return store.files.open_input_file(store.path)


def size_of(path: str) -> int:
    """Size in bytes; 0 if it cannot be read."""
    try:
        if not is_address(path):
            return Path(plain(path)).stat().st_size
        store = _store(path)
        return int(store.files.get_file_info(store.path).size or 0)
    except OSError:
        return 0


def matching(asked: str, endings: tuple[str, ...]) -> list[str]:
    """The files that a path, a pattern or a folder matches; in a folder, those with one of these endings."""
    if is_address(asked):
        return _matching_in_store(asked, endings)
    text = plain(asked)
    if Path(text).is_dir():
        inside = (path for path in Path(text).rglob("*") if path.name.lower().endswith(endings))
        names = sorted(str(path) for path in inside if path.is_file())
    elif Path(text).exists():
        names = [text]
    else:
        found = glob.glob(text, recursive=True)  # noqa: PTH207 - the pattern may be absolute
        names = sorted(name for name in found if Path(name).is_file())
    return [os.path.abspath(name) for name in names]  # noqa: PTH100 - links stay


def _matching_in_store(asked: str, endings: tuple[str, ...]) -> list[str]:
    from pyarrow.fs import FileSelector, FileType

    pattern, wild = None, min((asked.find(sign) for sign in WILD if sign in asked[8:]), default=-1)
    if wild >= 0 and not urlsplit(asked).query:
        pattern = _store(asked).path
        asked = asked[: asked.rfind("/", 0, wild)]
    store = _store(asked)
    try:
        about = store.files.get_file_info(store.path)
        if about.type == FileType.File:
            return [store.address(store.path)]
        inside = store.files.get_file_info(
            FileSelector(store.path, recursive=True, allow_not_found=True)
        )
    except OSError as error:
        raise AnalysisError(
            f"{asked} cannot be listed: {error}",
            "are address and credentials right? They are those of Arrow's file systems.",
        ) from error
    return sorted(
        store.address(one.path)
        for one in inside
        if one.type == FileType.File
        and (
            one.path.lower().endswith(endings)
            if pattern is None
            else fnmatch.fnmatchcase(one.path, pattern)
        )
    )


def _store(address: str) -> _Store:
    parts = urlsplit(address)
    after = f"?{parts.query}" if parts.query else ""
    files, inside = _opened(f"{parts.scheme}://{parts.netloc}{after}")
    path = f"{inside}{parts.path}".rstrip("/")
    return _Store(files, path, f"{parts.scheme}://{parts.netloc}".removesuffix(inside), after)


@cache
def _opened(root: str) -> tuple[Any, str]:
    """Open a store; returns it and the prefix of its paths (a bucket). Each process opens it once."""
    from pyarrow.fs import FileSystem

    try:
        files, inside = FileSystem.from_uri(root)
    except (OSError, ValueError) as error:
        raise AnalysisError(
            f"{root} cannot be opened: {error}",
            "s3://, gs://, abfs:// and hdfs:// can be, as Arrow's documentation says.",
        ) from error
    return files, inside.rstrip("/")
