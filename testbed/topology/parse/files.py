"""Read a file of the user: size, kind and encoding are checked first."""

import stat
from pathlib import Path

from testbed.topology.diagnostics.hints import did_you_mean
from testbed.topology.diagnostics.problems import Problem, TopologyErrors
from testbed.topology.diagnostics.source_map import split_lines

MAX_BYTES = 1024 * 1024


def text_of(path: Path) -> str:
    """The text of the file; TopologyErrors if it cannot be a topology or a scenario."""
    return _decoded(_content(path), str(path))


def check_text(text: str, source: str) -> None:
    """The same checks for a text from another source."""
    if "\0" in text:
        raise _binary(source)
    if len(text) > MAX_BYTES:
        raise TopologyErrors([Problem(source, None, None, f"longer than {MAX_BYTES // 1024} KiB")])


def _content(path: Path) -> bytes:
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _whole(path, "this is a folder, not a file", _files_in(path))
        if not stat.S_ISREG(status.st_mode):
            raise _whole(path, "this is not a regular file", "name a .yaml file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1) if status.st_size <= MAX_BYTES else b""
    except FileNotFoundError:
        raise _whole(path, "there is no such file", _near(path)) from None
    except PermissionError:
        raise _whole(path, "no permission to read this file", f"try: chmod +r {path}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _whole(path, f"the file cannot be read: {reason}", "name a .yaml file") from None
    if status.st_size > MAX_BYTES or len(content) > MAX_BYTES:
        raise _whole(
            path,
            f"the file is larger than {MAX_BYTES // 1024} KiB",
            "a topology is smaller; use groups with `count` for many nodes",
        )
    return content


def _decoded(content: bytes, source: str) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise TopologyErrors([Problem(source, None, None, "this is UTF-16", "save it as UTF-8")])
    if b"\0" in content:
        raise _binary(source)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = split_lines(content[: error.start].decode())
        line = content.split(b"\n")[content[: error.start].count(b"\n")]
        problem = Problem(
            source,
            len(before),
            len(before[-1]) + 1,
            f"byte 0x{content[error.start]:02x} is not UTF-8",
            "save the file as UTF-8 (on Japanese systems it may be Shift_JIS)",
            line.decode(errors="replace"),
        )
        raise TopologyErrors([problem]) from None


def _binary(source: str) -> TopologyErrors:
    problem = Problem(
        source, None, None, "this is a binary file (it holds NUL bytes)", "name a .yaml file"
    )
    return TopologyErrors([problem])


def _whole(path: Path, message: str, hint: str) -> TopologyErrors:
    return TopologyErrors([Problem(str(path), None, None, message, hint)])


def _files_in(folder: Path) -> str:
    found = sorted(file.name for file in folder.glob("*.y*ml"))
    return f"name a file in it, such as {folder / found[0]}" if found else "name a .yaml file"


def _near(path: Path) -> str:
    try:
        found = sorted(file.name for file in path.parent.glob("*.y*ml"))
    except OSError:
        found = []
    return did_you_mean(path.name, found) or "check the path; `ls topologies` shows the examples"
