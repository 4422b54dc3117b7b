"""The output of one command: progress and errors on stderr, the result on stdout, the exit code at the end.

    0 done · 1 failed · 2 wrong input · 3 done in part (with --strict also: with warnings) · 130 interrupted

With `--json` stdout gets exactly one JSON document, also when the command fails: {"error": {...}}.
"""

import errno
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import typer
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from testbed.errors import INTERRUPTED, NodeFailure, TestbedError
from testbed.progress import (
    Event,
    Incomplete,
    Note,
    StageAdvanced,
    StageEnded,
    StageStarted,
    Warned,
)
from testbed.topology import TopologyErrors

IN_PART = 3
MAKE_ROOM = (
    "make room with `testbed runs prune`, or put the captures elsewhere with TESTBED_CAPTURES"
)
PROGRESS_INTERVAL_S = 10.0  # between two lines of progress without a terminal
PIPED_WIDTH = 120  # columns of tables in a pipe or file


class Terminal:
    """Use as `with Terminal(as_json, strict) as terminal:`; pass `terminal.emit` to the function that does the work.

    `strict`: whether warnings make the exit code 3; None for a command that has no `--strict`, as it never warns.
    """

    def __init__(self, as_json: bool = False, strict: bool | None = None) -> None:
        self._as_json, self._strict = as_json, strict
        self._out = Console(highlight=False)
        if not self._out.is_terminal and "COLUMNS" not in os.environ:
            self._out.width = PIPED_WIDTH
        self._err = Console(stderr=True, highlight=False)
        self._stages: dict[str, TaskID] = {}
        self._warnings: list[str] = []
        self._incomplete: list[str] = []
        self._document: Any = None  # printed at the end, with all warnings
        self._printed_at = 0.0
        self.if_interrupted = "interrupted"
        self.so_far: dict[str, Any] = {}  # further keys of the document of a failing command
        self._progress = Progress(
            TextColumn("{task.description:<32}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=self._err,
            transient=False,
            disable=not self._err.is_terminal,
        )

    def emit(self, event: Event) -> None:
        """Show an event."""
        match event:
            case StageStarted(stage, total):
                self._stages[stage] = self._progress.add_task(stage, total=total, detail="")
                self._print_progress(stage, f" ({total})" if total and total > 1 else "")
            case StageAdvanced(stage, by, detail) if stage in self._stages:
                self._progress.update(self._stages[stage], advance=by, detail=escape(detail))
                if time.monotonic() > self._printed_at + PROGRESS_INTERVAL_S:
                    self._print_progress(stage, f": {self._done(stage)}")
            case StageEnded(stage) if stage in self._stages:
                self._end(self._stages[stage])
            case Note(text):
                self._err.print(text, markup=False, soft_wrap=not self._err.is_terminal)
            case Warned(text):
                self._warnings.append(text)
                self._print_warning("warning", text)
            case Incomplete(text):
                self._incomplete.append(text)
                self._print_warning("incomplete", text)
            case _:
                pass

    def _print_warning(self, kind: str, text: str) -> None:
        words = f"[yellow]{kind}:[/] {escape(text)}"
        self._err.print(words, soft_wrap=not self._err.is_terminal)

    def _print_progress(self, stage: str, how_far: str) -> None:
        """Print a line now and then where there are no progress bars."""
        if not self._err.is_terminal:
            self._err.print(stage + how_far, markup=False)
            self._printed_at = time.monotonic()

    def _done(self, stage: str) -> str:
        task = self._progress.tasks[self._progress.task_ids.index(self._stages[stage])]
        return f"{task.completed:g} of {task.total:g}" if task.total else f"{task.completed:g}"

    def _end(self, task: TaskID) -> None:
        total = self._progress.tasks[self._progress.task_ids.index(task)].total
        self._progress.update(task, completed=total or 1, total=total or 1, detail="")

    def show(self, *results: RenderableType) -> None:
        """Print a result for people; not with --json. Text is not wrapped, so that it can be searched."""
        if not self._as_json:
            self._progress.stop()
            for result in results:
                self._out.print(result, soft_wrap=isinstance(result, str | Text))

    def document(self, document: Any) -> None:
        """The result for programs; only with --json. It is printed at the end, with all warnings of the command."""
        self._document = document

    def _print_document(self) -> None:
        """That of a command which may warn lists the warnings, if it has no such list of its own."""
        document = self._document
        if self._strict is not None and isinstance(document, dict):
            lists = {"warnings": self._warnings, "incomplete": self._incomplete}
            document = document | {
                key: texts for key, texts in lists.items() if key not in document
            }
        if self._as_json and document is not None:
            typer.echo(json.dumps(document, indent=2))

    def line(self, document: Any) -> None:
        """One of several results for programs, on a line of its own; only with --json."""
        if self._as_json:
            typer.echo(json.dumps(document))

    @contextmanager
    def screen(self) -> Iterator[Callable[[RenderableType], None]]:
        """Show a changing result for people in its place; one below the other without a terminal."""
        self._progress.stop()
        if self._as_json or not self._out.is_terminal:
            yield self.show
            return
        with Live(console=self._out, auto_refresh=False) as live:
            yield lambda result: live.update(result, refresh=True)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
        if isinstance(error, TopologyErrors):
            self._fail_file(error)
        if isinstance(error, NodeFailure):
            self.so_far["failed"] = list(error.nodes)
        if isinstance(error, TestbedError):
            full = os.strerror(errno.ENOSPC) in error.message
            self._fail(error.message, error.hint or (MAKE_ROOM if full else ""), error.exit_code)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            where = f" while writing {error.filename}" if error.filename else ""
            self._fail(f"the disk is full{where}", MAKE_ROOM, 1)
        if isinstance(error, PermissionError):
            what = error.filename or "the operation"
            self._fail(f"permission denied: {what}", "`testbed doctor` says what is missing", 1)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            where = f": {error.filename}" if error.filename else ""
            self._fail(f"{error.strerror or error}{where}", "", 1)
        if isinstance(error, KeyboardInterrupt):
            self._fail(self.if_interrupted, "", INTERRUPTED)
        self._print_document()
        if error is None and (self._incomplete or (self._strict and self._warnings)):
            raise typer.Exit(IN_PART)

    def _fail_file(self, errors: TopologyErrors) -> None:
        self.document({"valid": False, "errors": errors.as_json(), "warnings": []})
        self._print_document()
        self._err.print(str(errors), markup=False, soft_wrap=True)
        raise typer.Exit(errors.exit_code)

    def _fail(self, message: str, hint: str, code: int) -> None:
        document = {"message": message, "hint": hint, "exit_code": code}
        known = self._document if isinstance(self._document, dict) else {}
        self.document({**known, **self.so_far, "error": document})
        self._print_document()
        self._err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
        if hint:
            self._err.print(f"  [bold]→[/] {escape(hint)}", soft_wrap=True)
        raise typer.Exit(code)


# Tables on narrow terminals: columns that matter less are left out rather than all of them cut.


_WIDE = 10_000


@dataclass(frozen=True, slots=True)
class Fitting:
    """The first variant that fits; else the last. A variant names the columns that it does without."""

    make: Callable[[Collection[str]], Table]
    variants: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unbounded = options.update_width(_WIDE)
        for left_out in ((), *self.variants):
            table = self.make(left_out)
            if table.__rich_measure__(console, unbounded).maximum <= options.max_width:
                break
        yield table


def what_is_missing(known: Sequence[str], left_out: Collection[str]) -> str | None:
    """A caption on the columns that were left out because the terminal is too narrow."""
    missing = [name for name in known if name in left_out]
    return f"a wider terminal shows more: {', '.join(missing)}" if missing else None
