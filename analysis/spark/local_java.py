"""Starts Spark's Java on this machine directly, also before it is needed.

Spark's own script starts another Java first, which only computes the command of the second one.
"""

import os
import secrets
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from analysis import without_pandas
from analysis.errors import AnalysisError
from analysis.spark import interrupts
from analysis.spark.archive import ClassArchive
from analysis.spark.java import JavaHome, find_java
from analysis.spark.settings import (
    FOREIGN,
    LOOPBACK,
    java_options,
    memory_mib,
    python_variables,
    spark_settings,
    write_log_settings,
)
from analysis.spark.shipping import is_local

POLL_S = 0.02
# What Spark's script gives to Java 17 and later (`org.apache.spark.launcher.JavaModuleOptions`), but for an incubator
# module that only machine learning uses, and that some Javas lack.
OPENED = (
    *(f"java.base/java.{package}" for package in ("lang", "lang.invoke", "lang.reflect", "io")),
    *(f"java.base/java.{package}" for package in ("net", "nio", "util", "util.concurrent")),
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    *(f"java.base/sun.{package}" for package in ("nio.ch", "nio.cs", "security.action")),
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


class Bridge(NamedTuple):
    """Where a process of Java waits for Python."""

    port: int
    secret: str

    @property
    def environment(self) -> dict[str, str]:
        """By these variables pyspark uses this process instead of starting one."""
        return {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}


class LocalJava:
    """Java with Spark in a process of its own, and its temporary folder; both are gone after the block.

    The process ends when its standard input does, so also if this process is killed.
    """

    def __init__(self, master: str = "local[*]", *, short: bool = True, archiving: bool = False):
        """`short`: Java does little of the work. Its optimising compiler would take most of the time, so it is disabled
        (measured: 22 instead of 37 s of processor time for a run of 6,500 packets).
        `archiving`: Java writes the class archive when it ends.
        """
        self.master = master
        self._short = short
        self._archiving = archiving
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._address_file = Path()
        self._archive: ClassArchive | None = None
        self._uses_archive = False
        self._without_archive = False  # because Java ended with it

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with interrupts.deferred():
            self.kill()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The process of Java."""
        assert self._process is not None
        return self._process

    @property
    def folder(self) -> Path:
        """For temporary files."""
        assert self._temporary is not None
        return Path(self._temporary.name)

    @property
    def archive(self) -> ClassArchive:
        """The class archive of this Java."""
        if self._archive is None:
            self._archive = ClassArchive(find_java(), _installed() / "jars")
        return self._archive

    @property
    def uses_archive(self) -> bool:
        """Whether Java was started with it."""
        return self._uses_archive

    @property
    def log(self) -> Path:
        """What Java has printed."""
        return self.folder / "spark.log"

    def last_lines(self) -> list[str]:
        """The last of what Java has printed; empty if it was not started."""
        if self._temporary is None or not self.log.is_file():
            return []
        return self.log.read_text(errors="replace").strip().splitlines()[-3:]

    @property
    def options(self) -> list[str]:
        """The options that depend on us."""
        return java_options(self.folder, short=self._short)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark."""
        executors = self.archive.options_for_executors()
        return spark_settings(self.folder, self.master, self.options, executors, short=self._short)

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which Spark finds Java and Python, and stays on this machine unless it has a cluster."""
        known = python_variables(self.archive.java)
        if is_local(self.master):
            return known | {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(self.folder / "home")}
        if python := os.environ.get("PYSPARK_PYTHON"):
            known["PYSPARK_PYTHON"] = python
        return known | {"SPARK_HOME": str(_installed())}

    def start(self) -> None:
        """Start Java if it was not started yet. It takes about 2 s until it waits for Python."""
        if self._process is not None:
            return
        with interrupts.deferred():
            if self._temporary is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="testbed-spark-")
                write_log_settings(self.folder)
                _link_home(self.folder / "home")
            options = []
            if self._archiving:
                options = self.archive.options_to_make()
            elif not self._without_archive:
                options = self.archive.options_to_use()
            self._uses_archive = bool(options) and not self._archiving
            self._process = self._started(self.archive.java, options)

    def bridge(self) -> Bridge:
        """Start Java if need be, and wait until it waits for Python; AnalysisError if it ends before."""
        self.start()
        while not self._address_file.is_file():
            if (code := self.process.poll()) is not None:
                self.kill()
                if not self._uses_archive:
                    raise AnalysisError(f"Java ended with exit code {code}.", "")
                self._without_archive = True
                self.start()
            time.sleep(POLL_S)
        if self._without_archive:  # Java ended with the archive, and works without it
            self.archive.discard()
        content = self._address_file.read_bytes()
        port, length = (int.from_bytes(content[at : at + 4]) for at in (0, 4))
        return Bridge(port, content[8 : 8 + length].decode())

    def kill(self) -> None:
        """End Java at once: nothing of it is needed any more, and stopping Spark in order takes a second.

        Its Python workers end when it does; its files are in our temporary folder.
        """
        if self._process is None:
            return
        self._process.kill()
        self.wait()

    def wait(self, seconds: float | None = None) -> int:
        """Close the standard input of Java, at which it ends by itself; return its exit code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait(seconds)
        self._process = None
        return code

    def _started(self, java: JavaHome, archive: list[str]) -> "subprocess.Popen[bytes]":
        self._address_file = self.folder / f"bridge-{secrets.token_hex(4)}"
        pairs = [f"{name}={value}" for name, value in self.settings.items()]
        inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [
                    str(java.path / "bin" / "java"),
                    *("-cp", self.archive.class_path),
                    *OPTIONS,
                    f"-Xmx{memory_mib()}m",
                    *self.options,
                    *archive,
                    "org.apache.spark.deploy.SparkSubmit",
                    *(word for pair in pairs for word in ("--conf", pair)),
                    "pyspark-shell",
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=inherited
                | self.variables
                | without_pandas.variables()
                | {
                    "SPARK_CONNECT_MODE": "0",
                    "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address_file),
                    "PYTHONSAFEPATH": "1",  # workers import nothing from the current folder
                },
                process_group=0,  # Ctrl-C is for Python, which ends Java
            )


def _installed() -> Path:
    """The folder of PySpark, without importing it."""
    from importlib.util import find_spec

    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _link_home(home: Path) -> None:
    """Make Spark's folder of links, without the archive from which its Python processes would import pyspark.

    Modules from the archive are compiled at each start, which takes three times as long as the installed ones. Spark
    waits 10 s for the process of a stream's source (`PythonWorkerFactory.createSimpleWorker`), also on a busy machine.
    """
    home.mkdir()
    for name in ("bin", "jars"):
        (home / name).symlink_to(_installed() / name)
