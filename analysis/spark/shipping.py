"""Packs our code for a cluster: a zip file, and a program for `spark-submit`."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

PACKAGES = ("analysis", "nodes", "testbed")
CODE, JOB = "testbed-code.zip", "testbed-job.py"
PROGRAM = '''"""spark-submit --py-files {code} {job} packets PATH... | analyze RUN"""

import sys

from analysis.job import main

sys.exit(main())
'''


def is_local(master: str) -> bool:
    """Whether this master runs Spark inside this process."""
    return master.startswith("local")


def ship_code(context: "SparkContext", folder: Path) -> None:
    """Send our packages to the workers. `folder` must keep the file as long as the session lasts."""
    context.addPyFile(str(zip_code(folder / CODE)))


def zip_code(target: Path) -> Path:
    """Pack all our sources."""
    root = Path(__file__).resolve().parents[2]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for source in sorted((root / package).rglob("*.py")):
                archive.write(source, source.relative_to(root))
    return target


def write_job(folder: Path) -> tuple[Path, Path]:
    """Write the files for `spark-submit`: our code, and the program that starts it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / JOB
    program.write_text(PROGRAM.format(code=CODE, job=JOB))
    return zip_code(folder / CODE), program
