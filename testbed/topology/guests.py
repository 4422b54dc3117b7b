"""Nodes that run somebody else's program: what belongs to them, and nobody else; their files are read here."""

from testbed.topology.checking import Checking
from testbed.topology.hints import with_article
from testbed.topology.model import External, NodeKind
from testbed.topology.raw import RawMember
from testbed.topology.source_map import Path

MAX_FILE_BYTES = 64 * 1024
_THEIRS = ("image", "packages", "command", "env", "files", "port")


def check_guest(checking: Checking, path: tuple[str, str], raw: RawMember) -> None:
    """An external node needs an image; any other node has none of these keys."""
    written = checking.written(*path)
    if raw.kind != NodeKind.EXTERNAL:
        for key in (key for key in _THEIRS if key in written):
            checking.key(
                (*path, key),
                f"{with_article(raw.kind)} has no `{key}`; only external nodes do",
                "remove it, or write `kind: external`",
            )
        return
    if "image" in written and "packages" in written:
        checking.key(
            (*path, "packages"),
            "an image is either named or made of packages, not both",
            "remove `image` or `packages`",
        )
    elif not raw.image and not raw.packages and checking.shaped.sound(*path):
        checking.key(
            path,
            f"{path[1]} has no image",
            "add `image: eclipse-mosquitto:2`, or `packages: [mosquitto]` to have one made",
        )
    if raw.packages and not raw.command and checking.shaped.sound(*path, "command"):
        checking.key(
            path,
            f"{path[1]} runs nothing: an image made of packages has no command of its own",
            "add `command:`",
        )
    for inside, source in raw.files.items():
        _check_file(checking, (*path, "files", inside), source)


def external(
    checking: Checking, path: Path, raw: RawMember, node: str, group: str | None
) -> External | None:
    """What an external node runs, complete: {node} and {group} are filled in, the files are read."""
    if raw.kind != NodeKind.EXTERNAL:
        return None

    def filled(text: str) -> str:
        return text.replace("{node}", node).replace("{group}", group or node)

    return External(
        image=raw.image,
        packages=tuple(dict.fromkeys(raw.packages)),
        command=tuple(filled(word) for word in raw.command),
        env=tuple((name, filled(value)) for name, value in sorted(raw.env.items())),
        files=tuple(
            (inside, _content(checking, source) or "")
            for inside, source in sorted(raw.files.items())
        ),
        port=raw.port,
    )


def _content(checking: Checking, source: str) -> str | None:
    """The file's text; None if it cannot be had. What is no file (a pipe, a device) might never end."""
    path = checking.folder / source
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        return content.decode() if len(content) <= MAX_FILE_BYTES else None
    except (OSError, ValueError):
        return None


def _check_file(checking: Checking, path: Path, source: str) -> None:
    if _content(checking, source) is None:
        checking.value(
            path,
            f"{checking.folder / source} cannot be read as a text of at most {MAX_FILE_BYTES // 1024} KiB",
            "a relative path begins at the topology file's own folder",
        )
