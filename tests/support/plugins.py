"""Packages that bring parts of testbed: wheels of the pages in `docs/dev`, installed into a folder."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, name: str, files: Mapping[str, str], entry_points: str) -> Path:
    """Build a wheel of these modules, and install it with pip; returns the folder for PYTHONPATH."""
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    information = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": entry_points,
    }
    whole = {**files, **{f"{name}-1.0.dist-info/{key}": text for key, text in information.items()}}
    record = f"{name}-1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in whole.items():
            archive.writestr(file, text)
        archive.writestr(record, "".join(f"{file},,\n" for file in (*whole, record)))
    target = folder / "installed"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run(
        [*pip, "--disable-pip-version-check", "--target", target, wheel],
        check=True,
        cwd=folder,
        stdin=subprocess.DEVNULL,
    )
    return target


def entry_points_of(toml: str) -> str:
    """The entry points of a `pyproject.toml` as a wheel has them."""
    (section,) = re.findall(
        r'^\[project\.entry-points\."([^"]+)"\]\n(.*?)(?=^\[|\Z)', toml, re.M | re.S
    )
    return f"[{section[0]}]\n" + section[1].replace('"', "")
