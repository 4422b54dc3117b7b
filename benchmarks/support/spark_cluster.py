"""A Spark cluster on loopback: a master with workers, also ones whose Python has none of our packages."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from analysis.spark.java import find_java

NO_CODE_BUT = ("numpy", "numpy.libs", "pyarrow")
FOR_A_DRIVER = (
    "pandas",
    "pandas.libs",
    "dateutil",
    "six.py",
    "pytz",
    "tzdata",
)  # PySpark asks for it
PATIENCE_S = 200  # a busy machine starts Java slowly
READY = {"Master": r"Starting Spark master at (\S+)", "Worker": r"registered with (\S+)"}
SPARK_HOME = Path(pyspark.__file__).parent


def bare_python(folder: Path, more: tuple[str, ...] = ()) -> Path:
    """A Python with numpy, pyarrow and the named packages, and none of ours."""
    environment = folder / f"bare{len(more)}"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = Path(sysconfig.get_path("purelib"))
    own = next(environment.glob("lib/python*/site-packages"))
    for name in (*NO_CODE_BUT, *more):
        if (packages / name).exists():
            (own / name).symlink_to(packages / name)
    python = environment / "bin" / "python"
    imported = subprocess.run(
        [python, "-c", "import testbed"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'testbed'" in imported.stderr
    return python


def spark_environment() -> dict[str, str]:
    """The environment for Spark's own commands."""
    return {
        **os.environ,
        "JAVA_HOME": str(find_java().path),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def own_cluster(folder: Path, workers: int = 1, cores: int = 2) -> Iterator[str]:
    """The address of the master; master and workers end with the block."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, role: str, *arguments: str) -> str:
        log = folder / f"{name}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [
                    SPARK_HOME / "bin" / "spark-class",
                    f"org.apache.spark.deploy.{role.lower()}.{role}",
                    *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
                    *arguments,
                ],
                env=spark_environment(),
                stdout=file,
                stderr=file,
            )
        started.append(process)
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.search(READY[role], log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        return found[1]

    work = folder / "work"
    try:
        master = start("master", "Master")
        for number in range(workers):
            place = str(work / str(number))
            asked = ("--cores", str(cores), "--memory", "1g", "--work-dir", place)
            start(f"worker-{number}", "Worker", *asked, master)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(PATIENCE_S)
        shutil.rmtree(work, ignore_errors=True)
