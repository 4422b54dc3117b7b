"""A finding of the doctor, and the commands that help."""

import shlex
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "limited", "missing"]


@dataclass(frozen=True, slots=True)
class Repair:
    """A command that helps, as words, never as text for a shell; `changes` says what it does to this machine."""

    argv: tuple[str, ...]
    changes: str
    root: bool = True
    given: str = ""  # on its standard input
    packages: tuple[str, ...] = ()  # what it installs: all installations become one

    def typed(self, as_root: bool = False) -> str:
        """As one would type it."""
        sudo = ("sudo",) if self.root and not as_root else ()
        words = shlex.join(sudo + self.argv)
        return f"echo {self.given} | {words}" if self.given else words


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `costs` and `fix` are empty where nothing is amiss; `repairs` where nothing can be done safely."""

    name: str
    status: Status
    found: str
    costs: str = ""
    fix: str = ""
    repairs: tuple[Repair, ...] = ()


def lack(
    name: str,
    status: Status,
    found: str,
    costs: str,
    repairs: tuple[Repair, ...],
    otherwise: str,
) -> Check:
    """Something is amiss: its repairs say what helps, and `otherwise` does where there are none."""
    fix = " && ".join(repair.typed() for repair in repairs) if repairs else otherwise
    return Check(name, status, found, costs, fix, repairs)
