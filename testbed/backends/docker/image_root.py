"""Completes the unpacked packages of an image: `python3 image_root.py ROOT`.

mmdebstrap runs it as a program, so it imports nothing of ours. It executes nothing of the image: an ARM image is made
as fast as a native one, also on machines that could not run it.
"""

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_PYTHON = 11  # of Python 3
PREFIX = "testbed: "  # of error messages
# Commands for a shell in a node; `busybox NAME` runs the others.
APPLETS = """
[ arp awk basename cat chmod chown clear cp cut date dd df diff dirname dmesg du echo env expr false find free grep
gunzip gzip head hexdump hostname id ip kill killall less ln ls md5sum mkdir mktemp more mount mv nc netstat nproc od
pidof ping printf ps pwd readlink realpath rm rmdir route sed seq setsid sh sha256sum sleep sort stat strings stty sync
tail tar tee test time timeout top touch tr traceroute true tty umount uname uniq unshare uptime vi watch wc wget which
whoami xargs xxd yes zcat
"""
BINARIES = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/local/bin")
USERS = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUPS = "root:x:0:\nnogroup:x:65534:\n"


def complete_root(root: Path) -> None:
    """Add a shell, users and empty folders that the packages do not contain; remove package lists."""
    for folder in ("usr/local/bin", "proc", "sys", "tmp", "run"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for applet in APPLETS.split():
        if not any(os.path.lexists(root / folder / applet) for folder in BINARIES):
            folder = "usr/bin" if applet == "sh" else "usr/local/bin"
            (root / folder / applet).symlink_to("/usr/bin/busybox")
    for name, lines in (("passwd", USERS), ("group", GROUPS)):
        if not (root / "etc" / name).exists():
            (root / "etc" / name).write_text(lines)
    (root / "etc/apt/sources.list").unlink(missing_ok=True)
    for leftover in ("var/lib/apt/lists", "var/cache/apt"):
        shutil.rmtree(root / leftover, ignore_errors=True)


def python_of(root: Path) -> int | None:
    """N if the root has a Python 3.N, else None."""
    found = [path.name.removeprefix("python3.") for path in root.glob("usr/lib/python3.*")]
    return max((int(version) for version in found if version.isdigit()), default=None)


def compile_modules(root: Path, version: int) -> None:
    """Compile with a Python of the same version, so that each node starts half a second sooner."""
    modules = root / f"usr/lib/python3.{version}"
    if sys.version_info[:2] == (3, version):
        compileall.compile_dir(modules, quiet=2, stripdir=str(root), prependdir="/", workers=0)
        return
    python = shutil.which(f"python3.{version}")
    if python:
        command = [
            python,
            "-m",
            "compileall",
            "-qq",
            "-j0",
            "-s",
            str(root),
            "-p",
            "/",
            str(modules),
        ]
        subprocess.run(command, check=False)


def main(root: Path, needs_python: bool) -> str:
    """Complete the root; return an error message, or nothing."""
    version = python_of(root)
    if needs_python and (version is None or version < OLDEST_PYTHON):
        found = f"Python 3.{version}" if version is not None else "no Python"
        return f"among these packages is {found}; nodes need 3.{OLDEST_PYTHON} or later"
    complete_root(root)
    if version is not None:
        compile_modules(root, version)
    return ""


if __name__ == "__main__":
    if complaint := main(Path(sys.argv[1]), "--python" in sys.argv[2:]):
        sys.exit(PREFIX + complaint)
