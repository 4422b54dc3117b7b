"""The errors of the product, as a small tree. Each is a sentence with a next step.

TestbedError            exit 1: the command was tried, and failed
+-- InputError          exit 2: the file, flag or name given is wrong
|   +-- TopologyErrors      all problems of a topology file at once (testbed.topology.diagnostics.problems)
|   +-- NameTaken           a lab of this name is up already
|   +-- NoSuchLab           no lab of this name
|   +-- NoSuchRun           no run folder of this name
+-- MissingCapability   exit 1: the machine lacks something; the hint says what helps
+-- NodeFailure         exit 1: one or more nodes failed; names them
"""

from collections.abc import Iterable, Sequence

A_FEW = 5
INTERRUPTED = 130  # exit code after Ctrl-C or SIGTERM


def few(names: Sequence[str]) -> str:
    """All names if they are few, else the first ones and the number of the others."""
    more = len(names) - A_FEW
    return ", ".join(names[:A_FEW]) + (f" and {more} more" if more > 0 else "")


class TestbedError(Exception):
    """Something failed; `hint` says what to do next."""

    __test__ = False  # the name is not a test class
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(TestbedError):
    """The user's input is wrong."""

    exit_code = 2


class NameTaken(InputError):
    """A lab of this name is up already."""


class NoSuchLab(InputError):
    """No lab of this name is up."""


class NoSuchRun(InputError):
    """No run folder has this name."""


class MissingCapability(TestbedError):
    """The machine lacks a capability that the command needs."""


class NodeFailure(TestbedError):
    """Nodes failed; `nodes` are their names."""

    def __init__(self, message: str, hint: str, nodes: Iterable[str]) -> None:
        super().__init__(message, hint)
        self.nodes = tuple(nodes)

    @classmethod
    def of(cls, failures: Sequence["NodeFailure"]) -> "NodeFailure":
        """Unite several failures."""
        return cls(
            "; ".join(failure.message for failure in failures),
            failures[0].hint,
            dict.fromkeys(name for failure in failures for name in failure.nodes),
        )
