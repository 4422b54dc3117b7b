"""One node as its keeper sees it."""

import os
import subprocess
from dataclasses import dataclass, field
from typing import Any

from testbed.errors import TestbedError
from testbed.keeper.held_process import HeldProcess
from testbed.links.access import Access
from testbed.links.spec import LinkSpec


class Refused(TestbedError):
    """A question that makes no sense in the present state."""


@dataclass(slots=True)
class Kept:
    """One node: its namespace, its process, its link. A router has no process.

    An adopted process is a container's: its end is noticed here, but collected by whoever made it.
    """

    name: str
    ns_fd: int
    pid: int | None
    process: "subprocess.Popen[bytes] | HeldProcess | None"
    adopted: bool = False
    link: LinkSpec | None = None
    router: "Kept | None" = None  # whose link this one's ends at
    shaped: bool = False
    lines: dict[str, Any] = field(default_factory=dict)  # up, down: as they were last shaped
    raised: bool = False

    def forget_link(self) -> None:
        """It has none any more."""
        self.link, self.router, self.shaped, self.raised = None, None, False, False
        self.lines = {}

    @property
    def is_router(self) -> bool:
        """Whether it is a namespace that only passes packets on."""
        return self.pid is None

    @property
    def running(self) -> bool:
        """Whether the process still lives. A router has none to lose."""
        return self.process is None or self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the process ended, if that can be known here."""
        return None if self.process is None or self.adopted else self.process.poll()

    @property
    def own_process(self) -> "subprocess.Popen[bytes] | HeldProcess | None":
        """The process, if it is the keeper's to end."""
        return None if self.adopted else self.process

    @property
    def held(self) -> bool:
        """Whether the namespace can still be of use: an adopted one is lost with its process."""
        return not self.adopted or self.running

    def replace_process(self, process: "subprocess.Popen[bytes] | HeldProcess") -> None:
        """Another one lives in its namespace, on its link."""
        if isinstance(self.process, HeldProcess):
            self.process.close()
        self.pid, self.process = process.pid, process

    def close(self) -> None:
        """Let go of namespace and process."""
        os.close(self.ns_fd)
        if isinstance(self.process, HeldProcess):
            self.process.close()

    @property
    def access(self) -> Access:
        """The link with the namespaces of its ends."""
        if self.link is None:
            raise Refused(f"{self.name} has no link yet")
        router = None if self.router is None else self.router.access
        return Access(self.link, self.ns_fd, router, self.is_router)
