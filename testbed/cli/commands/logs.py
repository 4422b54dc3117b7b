"""`testbed logs [LAB|RUN] [NODE]`: read, follow and show the JSON lines that nodes log."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from testbed.cli.options import AsJson
from testbed.cli.terminal import Terminal
from testbed.errors import InputError
from testbed.lab.external_nodes import save_outputs
from testbed.progress import Note
from testbed.records import did_you_mean, find_lab, find_run, lab_names

POLL_S = 0.2


def files_of(folder: Path, node: str | None) -> list[Path]:
    """The log of one node, or of all."""
    nodes = {path.stem for path in folder.glob("*") if path.suffix in (".jsonl", ".stderr")}
    files = [folder / f"{name}.jsonl" for name in sorted(nodes)]
    if node is None:
        return files
    chosen = [file for file in files if file.stem == node]
    if not chosen:
        known = [file.stem for file in files]
        raise InputError(f"no log of a node named {node!r} in {folder}", did_you_mean(node, known))
    return chosen


def read(files: list[Path]) -> list[dict[str, Any]]:
    """All lines of all files, by time. A last line that is still being written is left out."""
    lines = [line for file in files for line in (*_logged(file), *_stderr_lines(file))]
    return sorted(lines, key=lambda line: line["t"])


def _logged(log: Path) -> list[dict[str, Any]]:
    return _whole_lines(log.read_text()) if log.exists() else []


def _stderr_lines(log: Path) -> list[dict[str, Any]]:
    """What the node wrote to its standard error: nothing, unless it could not go on."""
    errors = log.with_suffix(".stderr")
    try:
        text, moment = errors.read_text(errors="replace"), errors.stat().st_mtime_ns
    except OSError:
        return []
    common = {"t": moment, "node": log.stem, "event": "stderr"}
    return [{**common, "text": line} for line in text.splitlines()]


def follow_lines(files: list[Path]) -> Iterator[dict[str, Any]]:
    """All lines so far, then each new one as it comes; ends with an interrupt."""
    tail = Tail()
    while True:
        yield from sorted(tail.fresh(files), key=lambda line: line["t"])
        time.sleep(POLL_S)


class Tail:
    """Files that may still grow, each read on from where it was read last."""

    def __init__(self) -> None:
        self._read_up_to: dict[Path, int] = {}

    def fresh(self, files: list[Path]) -> list[dict[str, Any]]:
        """What is new in these, file by file. A last line that is still being written waits."""
        lines = []
        for file in files:
            if not file.exists():
                continue
            offset = self._read_up_to.get(file, 0)
            with file.open("rb") as log:
                log.seek(offset)
                data = log.read()
            data = data[: data.rfind(b"\n") + 1]
            self._read_up_to[file] = offset + len(data)
            lines += _whole_lines(data.decode(errors="replace"))
        return lines


def _whole_lines(text: str) -> list[dict[str, Any]]:
    """A line that a crash has torn is left out."""
    lines = []
    for line in text[: text.rfind("\n") + 1].splitlines():
        with suppress(ValueError):
            lines.append(json.loads(line))
    return lines


def render(line: dict[str, Any]) -> Text:
    """One line for people: time of day, node, event, the rest as key=value."""
    seconds, nanoseconds = divmod(line["t"], 10**9)
    clock = time.strftime("%H:%M:%S", time.localtime(seconds)) + f".{nanoseconds // 10**6:03d}"
    return Text.assemble(
        (clock, "dim"),
        " ",
        (f"{line['node']:<15} ", "cyan"),
        (f"{line['event']:<11} ", "bold"),
        _rest(line),
    )


def _rest(line: dict[str, Any]) -> str:
    """The text of an external program stays as it is; of a reception, its delay by the nodes' own clocks."""
    if set(line) == _TEXT:
        return str(line["text"])
    fields = {key: value for key, value in line.items() if key not in _LEADING}
    if line["event"] == "receive" and "published_ns" in fields:
        fields["delay"] = f"{(line['t'] - fields.pop('published_ns')) / 1e6:.1f}ms"
    return " ".join(f"{key}={value}" for key, value in fields.items())


_LEADING = {"t", "node", "event"}
_TEXT = _LEADING | {"text"}


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: testbed logs demo siren --follow")(logs)


def logs(
    name: Annotated[
        str | None, typer.Argument(metavar="LAB|RUN", help="A lab that is up, or a run.")
    ] = None,
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="Only this node.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new lines as nodes write them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the logs of nodes, in order of time."""
    with Terminal(as_json) as terminal:
        if follow and as_json:
            raise InputError("--follow has no end, --json is one document", "use one of them")
        folder = _logs_folder(name)
        files = files_of(folder, node)
        if follow:
            with suppress(KeyboardInterrupt):
                for line in follow_lines(files):
                    terminal.show(render(line))
            return
        lines = read(files)
        terminal.document(lines)
        terminal.show(*(render(line) for line in lines))
        if not lines:
            terminal.emit(Note("nothing logged yet"))


def _logs_folder(name: str | None) -> Path:
    labs = lab_names()
    if name in labs or (name is None and labs):
        lab = find_lab(name)
        save_outputs(lab)
        return lab.run_place.logs
    return find_run(name).logs
