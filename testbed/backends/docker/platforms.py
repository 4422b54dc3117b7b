"""The platforms whose programs run here: natively, or through the kernel's handlers for foreign programs (binfmt_misc).

`inspect_machine` asks the machine, and `judge` interprets the answers.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import InputError, MissingCapability, few
from testbed.topology.schema.sections import PLATFORMS

BINFMT = Path("/proc/sys/fs/binfmt_misc")
INSTALL = "sudo apt-get install qemu-user-static binfmt-support"
_VARIANTS = {"arm": "v7", "arm64": ""}  # the variant of a name without one
_DEBIAN = {"arm": "armhf", "386": "i386"}
_QEMU = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv8l": "arm", "i686": "386"}


@dataclass(frozen=True, slots=True, order=True)
class Platform:
    """A processor as engines name it: linux/arm64, linux/arm/v7."""

    architecture: str
    variant: str = ""

    @classmethod
    def parse(cls, text: str) -> "Platform":
        """InputError unless it is `linux/ARCHITECTURE` with or without a variant."""
        system, _, rest = text.partition("/")
        architecture, _, variant = rest.partition("/")
        if system != "linux" or not architecture.isalnum() or "/" in variant:
            raise InputError(f"{text!r} is no platform", f"known are {', '.join(PLATFORMS)}")
        if architecture == "arm64":
            return cls("arm64")  # v8, the only one there is
        return cls(architecture, variant or _VARIANTS.get(architecture, ""))

    def __str__(self) -> str:
        return "/".join(filter(None, ("linux", self.architecture, self.variant)))

    @property
    def debian(self) -> str:
        """Debian's name of the architecture."""
        return _DEBIAN.get(self.architecture, self.architecture)

    @property
    def handler(self) -> str:
        """The name under which qemu registers itself for its programs."""
        return f"qemu-{_QEMU.get(self.architecture, self.architecture)}"


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler. `fixed`: the kernel has opened it already, so it also works inside containers."""

    enabled: bool
    fixed: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor of a machine, and its handlers for programs of other processors."""

    own: Platform
    runs_32_bit: bool  # of an arm64: most, but not all, also run arm/v7
    mounted: bool  # whether handlers are visible at all
    handlers: Mapping[str, Handler]
    installed: frozenset[str]  # handlers that could be enabled


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether programs of a platform run here, a phrase on how or why not, and the command that helps."""

    runs: bool
    how: str
    fix: str = ""
    emulated: bool = False


def read_handler(text: str) -> Handler:
    """Parse a file of binfmt_misc."""
    lines = text.splitlines()
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags:")), "")
    return Handler(enabled=lines[:1] == ["enabled"], fixed="F" in flags)


def judge(wanted: Platform, machine: Machine) -> Verdict:
    """Judge whether programs of a platform run on this machine."""
    if wanted == machine.own:
        return Verdict(True, "natively")
    if machine.own.architecture == "arm64" and wanted.architecture == "arm" and machine.runs_32_bit:
        return Verdict(True, "natively")
    handler = machine.handlers.get(wanted.handler)
    if handler is None:
        why = "no handler (binfmt_misc) is registered"
        return Verdict(False, why, _to_register(wanted, machine))
    if not handler.enabled:
        return Verdict(
            False,
            "the handler (binfmt_misc) is disabled",
            f"echo 1 | sudo tee {BINFMT / wanted.handler}",
        )
    if not handler.fixed:
        return Verdict(
            False, "the handler (binfmt_misc) cannot be seen inside containers (no flag F)", INSTALL
        )
    return Verdict(True, "through qemu", emulated=True)


def _to_register(wanted: Platform, machine: Machine) -> str:
    steps = [] if wanted.handler in machine.installed else [INSTALL]
    if not machine.mounted:
        steps.append(f"sudo mount -t binfmt_misc binfmt_misc {BINFMT}")
    if not steps or not machine.mounted:
        steps.append(f"sudo update-binfmts --enable {wanted.handler}")
    return " && ".join(steps)


def inspect_machine() -> Machine:
    """Inspect the processor and the handlers of this machine."""
    own = Platform.parse(f"linux/{_MACHINES.get(platform.machine(), platform.machine())}")
    mounted = (BINFMT / "status").exists()
    found = BINFMT.glob("qemu-*") if mounted else ()
    return Machine(
        own=own,
        runs_32_bit=own.architecture == "arm64" and _runs_32_bit(),
        mounted=mounted,
        handlers={entry.name: read_handler(entry.read_text()) for entry in found},
        installed=frozenset(_installed()),
    )


def _installed() -> Iterable[str]:
    """Handlers that `update-binfmts` could enable."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"  # these folders are missing in the PATH of many users
    if shutil.which("update-binfmts", path=path) is None:
        return ()
    return (entry.name for entry in Path("/usr/share/binfmts").glob("qemu-*"))


def _runs_32_bit() -> bool:
    """Whether an arm64 processor runs 32-bit programs: only then the kernel accepts this personality."""
    try:
        asked = subprocess.run(["setarch", "linux32", "true"], capture_output=True, check=False)
    except OSError:
        return False
    return asked.returncode == 0


def platform_verdicts() -> dict[str, Verdict]:
    """The verdict on each platform that a topology may ask for."""
    machine = inspect_machine()
    return {name: judge(Platform.parse(name), machine) for name in PLATFORMS}


def refuse_foreign(wanted: Mapping[str, Platform]) -> None:
    """MissingCapability if nodes (given by name) are for platforms whose programs do not run here."""
    machine = inspect_machine()
    messages, fixes = [], []
    for asked in sorted(set(wanted.values())):
        verdict = judge(asked, machine)
        if not verdict.runs:
            names = [name for name, its in wanted.items() if its == asked]
            messages.append(
                f"programs for {asked} do not run here, as {verdict.how}; it is wanted by {few(names)}"
            )
            fixes.append(verdict.fix)
    if messages:
        hint = (
            f"{'; '.join(dict.fromkeys(fixes))} (or --backend netns, which does without platforms)"
        )
        raise MissingCapability("; ".join(messages), hint)
