"""What can go wrong, as a small tree. Each error is a sentence with a next step.

TestbedError            exit 1: it was tried and failed
+-- InputError          exit 2: the file, flag or name given is wrong
|   +-- TopologyErrors      all problems of a topology file at once (testbed.topology.problems)
|   +-- NameTaken           a lab of this name is up already
|   +-- NoSuchLab           no lab of this name
|   +-- NoSuchRun           no run folder of this name
+-- MissingCapability   exit 1: the machine lacks something; the hint says what helps
+-- NodeFailure         exit 1: one or more nodes did not do as asked; names them
"""


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
    """No run folder answers to this name."""


class MissingCapability(TestbedError):
    """The machine lacks something that was asked for."""


class NodeFailure(TestbedError):
    """Nodes did not do as asked."""
