"""Notes which files of a tree run, in a process and in all that it starts.

`journeys` puts a copy of this file, named `sitecustomize.py`, into a folder of PYTHONPATH: each Python process imports
it first. A process appends lines to a file that has its number as name:

    # ppid role command line                  once
    t turn file                               a function of this file is called, or a coroutine goes on
    t turn !write                             something is written to a file descriptor
    t turn !open path                         a file of the watched folder is opened

Times are ns since 1970; `turn` is when the event loop began the callback that runs. Usually only the first call of a
file is noted, and the first one after a watched file was opened; while the first byte of the switch is 1, every call
is. Functions that run while a module is imported, and the bodies of modules and classes, are left out.
"""

import mmap
import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

FOLDER, TREE = "INVENTORY_CALLS", "INVENTORY_TREE"
WATCHED = "INVENTORY_WATCHED"  # opened files below a folder of this name are noted
SWITCH = "switch"
_FUNCTION = 1  # inspect.CO_OPTIMIZED: the bodies of modules and classes do not have it
_IMPORTS = "<frozen importlib._bootstrap>"


class Recorder:
    """The notes of this process; a fork begins its own."""

    def __init__(self, folder: str, packages: tuple[str, ...], watched: str) -> None:
        self._folder = folder
        self._packages = packages  # folders, with a slash at the end
        self._root = len(os.path.commonpath(packages)) + 1
        self._watched = f"/{watched}/" if watched else ""
        with open(f"{folder}/{SWITCH}", "r+b") as file:  # noqa: PTH123
            self._switch = mmap.mmap(file.fileno(), 1)
        self._ours: dict[CodeType, str] = {}  # a function's file, "" if it is none of the tree
        self._turn = 0
        self._seen: set[str] = set()
        self._opened = False
        self.begin()

    def begin(self) -> None:
        """A process begins, or a fork."""
        self._seen, self._opened = set(), False
        self._path = f"{self._folder}/{os.getpid()}"
        self._append(f"#\t{os.getppid()}\t{os.environ.get('TESTBED_ROLE', '')}\t{_command()}\n")

    def profile(self, frame: FrameType, event: str, called: Any) -> None:
        """What `sys.setprofile` wants to be told."""
        if event == "call":
            code = frame.f_code
            file = self._ours.get(code)
            if file is None:
                file = self._ours[code] = self._file(code)
            if file:
                self._note(file, frame)
            elif code.co_name == "_run" and code.co_filename.endswith("asyncio/events.py"):
                self._turn = time.time_ns()
        elif event == "c_call" and called is os.write and self._switch[0]:
            self._line("!write")

    def opened(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook."""
        if event != "open" or self._opened:
            return
        if isinstance(arguments[0], str) and self._watched in arguments[0]:
            self._opened = True
            self._line(f"!open {arguments[0]}")
            self._seen.clear()
            self._note_opener(sys._getframe(1))

    def _note_opener(self, below: FrameType | None) -> None:
        """The tree's file whose function opens the watched one."""
        while below is not None:
            if file := self._file(below.f_code):
                self._note(file, below)
                return
            below = below.f_back

    def _file(self, code: CodeType) -> str:
        ours = code.co_flags & _FUNCTION and code.co_filename.startswith(self._packages)
        return code.co_filename[self._root :] if ours else ""

    def _note(self, file: str, frame: FrameType) -> None:
        if not self._switch[0] and (file in self._seen or _imported(frame)):
            return
        self._seen.add(file)
        self._line(file)

    def _line(self, text: str) -> None:
        self._append(f"{time.time_ns()}\t{self._turn}\t{text}\n")

    def _append(self, text: str) -> None:
        """Opened each time: programs close descriptors that they do not know."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(file, text.encode(errors="replace"))
        finally:
            os.close(file)


def _imported(frame: FrameType) -> bool:
    """Whether this runs because a module is imported."""
    below: FrameType | None = frame
    while below is not None:
        if below.f_code.co_filename == _IMPORTS:
            return True
        below = below.f_back
    return False


def _command() -> str:
    raw = Path("/proc/self/cmdline").read_bytes()
    return " ".join(raw.decode(errors="replace").split("\0")).replace("\n", " ")


def start() -> None:
    """Record from now on, in this process and its forks."""
    folders = tuple(os.environ[TREE].split(os.pathsep))
    recorder = Recorder(os.environ[FOLDER], folders, os.environ.get(WATCHED, ""))
    os.register_at_fork(after_in_child=recorder.begin)
    if os.environ.get(WATCHED):
        sys.addaudithook(recorder.opened)
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)


if __name__ == "sitecustomize" and FOLDER in os.environ:
    start()
