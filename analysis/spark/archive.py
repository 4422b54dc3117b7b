"""The class archive: Spark's classes as Java has them in memory, in the user's cache.

Java loads about 11,000 classes when it starts Spark, which takes longer than it takes to measure most runs. With an
archive it maps them into its memory instead. A process in the background makes the archive after the first session
(`analysis.spark.training`). Without one, and with one that Java refuses, Spark starts slower and computes the same.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from analysis.spark.detached import start_module
from analysis.spark.java import JavaHome, cache_folder
from analysis.spark.settings import java_options

CHOICE = "TESTBED_CLASS_ARCHIVE"
OFF = "off"  # a value of the choice: neither use nor make archives
KEEP = "keep"  # another one: use archives, but make none
FOLDER = "class-archives"
NEEDED_BYTES = 1 << 30  # of free space, to make one
KEPT = 3  # archives; each has 120 to 210 MB
AOT_VERSION = 25  # from here on Java calls it an AOT cache, which also works for runtimes without a base archive


class State(StrEnum):
    """Whether Java has an archive."""

    OFF = "off"
    MISSING = "missing"
    MAKING = "making"
    FAILED = "failed"
    MADE = "made"


@dataclass(frozen=True)
class ClassArchive:
    """The archive for one Java, one PySpark, and the options with which Java is started."""

    java: JavaHome
    jars: Path  # of PySpark

    @cached_property
    def path(self) -> Path:
        """Its file. Another Java, PySpark or other options give another name."""
        parts = [self.class_path, *java_options(Path("/"), short=True), *self._quietly]
        runtime = self.java.runtime
        parts += [_seen(runtime / file) for file in ("release", "lib/server/libjvm.so")]
        parts += [_seen(jar) for jar in sorted(self.jars.glob("*.jar"))]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        return cache_folder(os.environ) / FOLDER / f"java-{self.java.version}-{key}.archive"

    @property
    def class_path(self) -> str:
        """Where Java finds Spark, with what is first for executors of a cluster: a class archive works for one path.

        Spark puts its folder of settings first, which PySpark does not have.
        """
        settings = self.jars.with_name("conf")
        first = [] if settings.exists() else [settings]
        return ":".join(map(str, (*first, *self.jars.glob("slf4j-api-*.jar"), self.jars / "*")))

    @property
    def unfinished(self) -> Path:
        """Where Java writes it."""
        return self.path.with_suffix(".unfinished")

    @property
    def failure(self) -> Path:
        """A file that says why it could not be made. It is not tried again."""
        return self.path.with_suffix(".failed")

    def options_to_use(self) -> list[str]:
        """The options with which Java uses it; empty if there is none."""
        if os.environ.get(CHOICE) == OFF or not self.path.is_file():
            return []
        with suppress(OSError):
            os.utime(
                self.path
            )  # the archives that were not used for the longest time are removed first
        name = "AOTCache" if self._is_aot else "SharedArchiveFile"
        return [f"-XX:{name}={self.path}", *self._quietly]

    def options_for_executors(self) -> list[str]:
        """The options with which executors on this machine use it; executors elsewhere find no such file.

        Theirs may be another Java. It ignores unknown options, but not unknown names of logs.
        """
        spaced = " " in str(self.path)  # Spark would divide the option
        return [] if spaced else [one for one in self.options_to_use() if one.startswith("-XX:")]

    def options_to_make(self) -> list[str]:
        """The options with which Java writes it when it ends."""
        name = "AOTCacheOutput" if self._is_aot else "ArchiveClassesAtExit"
        return [f"-XX:{name}={self.unfinished}", *self._quietly]

    @property
    def _is_aot(self) -> bool:
        return self.java.version >= AOT_VERSION

    @property
    def _quietly(self) -> list[str]:
        """Java verifies the archive's checksum (0.05 s), and says nothing if it does not use the archive."""
        return ["-XX:+VerifySharedSpaces", "-Xlog:aot=off" if self._is_aot else "-Xlog:cds=off"]

    def discard(self) -> None:
        """Remove it."""
        with suppress(OSError):
            self.path.unlink()

    def state(self) -> State:
        """Whether there is one."""
        if os.environ.get(CHOICE) == OFF:
            return State.OFF
        if self.path.is_file():
            return State.MADE
        if self.failure.is_file():
            return State.FAILED
        return State.MAKING if self._is_locked() else State.MISSING

    def describe(self) -> str:
        """The state as a sentence."""
        match self.state():
            case State.OFF:
                return f"not used ({CHOICE}={OFF})"
            case State.MADE:
                about = self.path.stat()
                day = datetime.fromtimestamp(about.st_mtime, UTC).strftime("%Y-%m-%d")
                return f"{about.st_size / 1e6:.0f} MB, last used {day}"
            case State.FAILED:
                return f"could not be made: {self.failure.read_text(errors='replace').strip()}"
            case State.MAKING:
                return "is being made in the background"
            case State.MISSING:
                return self.obstacle() or "none yet; the next analysis makes it in the background"

    def obstacle(self) -> str:
        """Why it cannot be made here; empty if it can."""
        if os.environ.get(CHOICE) == KEEP:
            return f"none, and none is made ({CHOICE}={KEEP})"
        folder = self.path.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(folder).free
        except OSError as error:
            return f"none: {folder} cannot be written: {error.strerror}"
        if not os.access(folder, os.W_OK):
            return f"none: {folder} cannot be written"
        if free < NEEDED_BYTES:
            return f"none: less than {NEEDED_BYTES / 1e9:.0f} GB are free in {folder}"
        return ""

    def make_in_background(self) -> None:
        """Start a process that makes it, unless there is one, it cannot be made, or it is being made."""
        if self.state() is not State.MISSING or self.obstacle():
            return
        with suppress(OSError, subprocess.CalledProcessError):
            start_module("analysis.spark.training")

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Whether nobody else makes it; nobody else does inside the block."""
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def keep(self) -> None:
        """Keep what Java has written, and remove the archives that were not used for the longest time."""
        self.unfinished.replace(self.path)
        by_use = sorted(self.path.parent.glob("*.archive"), key=lambda one: -one.stat().st_mtime)
        for old in by_use[KEPT:]:
            old.unlink(missing_ok=True)

    def _is_locked(self) -> bool:
        try:
            with self.path.with_suffix(".lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False


def _seen(file: Path) -> str:
    """What distinguishes a file from a later version of it."""
    try:
        about = file.stat()
    except OSError:
        return f"{file} -"
    return f"{file} {about.st_size} {about.st_mtime_ns}"
