"""Pages of the documentation as a reader uses them: their code blocks, and commands in a shell."""

import os
import re
import subprocess
import sys
from pathlib import Path


def blocks_of(page: Path) -> dict[str, list[str]]:
    """The page's code blocks by language, in their order."""
    found: dict[str, list[str]] = {}
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S):
        found.setdefault(language, []).append(body)
    return found


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in this folder, with `testbed` in the path."""
    commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": commands},
        text=True,
        capture_output=True,
        timeout=240,
        check=False,
    )
