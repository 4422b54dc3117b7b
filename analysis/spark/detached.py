"""Starts one of our modules as a process that outlives this one."""

import os
import subprocess
import sys
from pathlib import Path

# The shell ends at once, so the process is nobody's child, and says its number.
SHELL = '"$@" < /dev/null > "$TESTBED_OUTPUT" 2>&1 & echo $!'


def start_module(name: str, *arguments: str, output: Path = Path(os.devnull)) -> int:
    """Start the module in a session of its own; returns the number of its process."""
    ours = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        ["sh", "-c", SHELL, "sh", sys.executable, "-m", name, *arguments],
        cwd="/",
        env={**os.environ, "PYTHONPATH": path, "TESTBED_OUTPUT": str(output)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
    )
    return int(done.stdout)
