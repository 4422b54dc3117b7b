"""Our own code for the workers of a cluster, which have none of it: one zip file."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("analysis", "nodes", "testbed")


def is_local(master: str) -> bool:
    """Whether this master is Spark inside this very command."""
    return master.startswith("local")


def ship_code(spark: "SparkSession", folder: Path) -> None:
    """Workers import our packages from here on. `folder` keeps the file as long as the session lasts."""
    spark.sparkContext.addPyFile(str(zip_code(folder / "testbed-code.zip")))


def zip_code(target: Path) -> Path:
    """All our sources, as they are beside this module."""
    root = Path(__file__).resolve().parent.parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for source in sorted((root / package).rglob("*.py")):
                archive.write(source, source.relative_to(root))
    return target
