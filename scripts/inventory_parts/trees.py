"""A source tree under inspection: its packages, its modules, and programs that run with its code."""

import ast
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

PATIENCE_S = 1800
NOTHING: Mapping[str, str] = MappingProxyType({})
INSIDE = Path(__file__).with_name("inside.py")
PRODUCT = ("analysis", "nodes", "testbed")  # the packages a user runs


def say(text: str) -> None:
    """A line of progress."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Module:
    """A Python file of a package."""

    name: str
    path: Path
    text: str

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.text)


@dataclass(frozen=True)
class Finished:
    """What a program printed, its exit code and the CPU time it took."""

    code: int
    out: str
    err: str
    cpu_s: float

    @property
    def timed_out(self) -> bool:
        return self.code < 0


@dataclass(frozen=True)
class Tree:
    """A checkout. No module of it is imported into this process: children import it, with PYTHONPATH set to it."""

    folder: Path

    @cached_property
    def project(self) -> dict[str, Any]:
        return tomllib.loads((self.folder / "pyproject.toml").read_text())

    @cached_property
    def packages(self) -> list[str]:
        """The top-level packages that the project file lists."""
        patterns = self.project["tool"]["setuptools"]["packages"]["find"]["include"]
        names = (pattern.rstrip("*.") for pattern in patterns)
        return sorted(name for name in names if (self.folder / name / "__init__.py").exists())

    @cached_property
    def entry_point(self) -> str:
        """Where the `testbed` command begins, as `module:function`."""
        return str(self.project["project"]["scripts"]["testbed"])

    def modules(self, packages: Sequence[str] | None = None) -> list[Module]:
        """The modules of these packages, or of all."""
        chosen = self.packages if packages is None else packages
        return [module for module in self._modules if module.name.partition(".")[0] in chosen]

    @cached_property
    def _modules(self) -> list[Module]:
        found = (path for each in self.packages for path in (self.folder / each).rglob("*.py"))
        return [Module(self._dotted(path), path, path.read_text()) for path in sorted(found)]

    def product(self) -> list[Module]:
        return self.modules([name for name in PRODUCT if name in self.packages])

    def _dotted(self, path: Path) -> str:
        parts = path.relative_to(self.folder).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def environment(self, variables: Mapping[str, str] = NOTHING) -> dict[str, str]:
        apart = (
            "TESTBED_",
            "PYTHONDONTWRITE",
        )  # where no byte code is kept, each call compiles all
        given = {key: value for key, value in os.environ.items() if not key.startswith(apart)}
        fixed = {"PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0", "COLUMNS": "120"}
        return {**given, **fixed, **variables}

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        variables: Mapping[str, str] = NOTHING,
        cpu_limit_s: int | None = None,
    ) -> Finished:
        """A Python program with this tree's code; `variables` go into its environment."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = subprocess.Popen(
                [sys.executable, "-P", *arguments],
                cwd=cwd,
                env=self.environment(variables),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # what is ended takes its own children along
            )
            if cpu_limit_s is not None:
                resource.prlimit(child.pid, resource.RLIMIT_CPU, (cpu_limit_s, cpu_limit_s + 5))
            try:
                code, cpu_s = _waited(child)
            except KeyboardInterrupt:
                os.killpg(child.pid, signal.SIGKILL)
                raise
            out.seek(0)
            err.seek(0)
            return Finished(code, out.read(), err.read(), cpu_s)

    def inside(self, task: str, *arguments: str, cwd: Path) -> Finished:
        """A task of inside.py, which runs with this tree's code."""
        return self.run([str(INSIDE), task, *arguments], cwd)

    def command(
        self,
        *arguments: str,
        cwd: Path,
        spark: bool = True,
        cpu_limit_s: int | None = None,
        variables: Mapping[str, str] = NOTHING,
    ) -> Finished:
        """The `testbed` command, with state and runs below `cwd`; without Spark it ends where it would start it."""
        places = {"TESTBED_STATE": str(cwd / "state"), "TESTBED_CAPTURES": str(cwd / "captures")}
        task = "command" if spark else "command-without-spark"
        given = [str(INSIDE), task, self.entry_point, *arguments]
        return self.run(given, cwd, {**places, **variables}, cpu_limit_s)


def _waited(child: "subprocess.Popen[bytes]") -> tuple[int, float]:
    """The exit code (negative: ended by a signal) and the CPU time."""
    end = time.monotonic() + PATIENCE_S
    while True:
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, used.ru_utime + used.ru_stime
        if time.monotonic() > end:
            os.killpg(child.pid, signal.SIGKILL)
            end = float("inf")
        time.sleep(0.005)


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder with a short path: Unix sockets may lie in it."""
    with tempfile.TemporaryDirectory(prefix="inv-") as folder:
        yield Path(folder)
