"""One node as its keeper sees it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import TestbedError
from testbed.links.spec import LinkSpec
from testbed.links.wiring import Access


class Refused(TestbedError):
    """A question that makes no sense in the present state."""


@dataclass(slots=True)
class Kept:
    """One node: its namespace, its process if the keeper started it, its link."""

    name: str
    ns_fd: int
    pid: int
    process: "subprocess.Popen[bytes] | None"
    link: LinkSpec | None = None
    shaped: bool = False
    raised: bool = False

    @property
    def running(self) -> bool:
        """Whether the process still lives; adopted ones are watched by whoever made them."""
        if self.process is None:
            return Path(f"/proc/{self.pid}").exists()
        return self.process.poll() is None

    @property
    def held(self) -> bool:
        """Whether the namespace can still be of use: an adopted one is lost with its process."""
        return self.process is not None or self.running

    @property
    def access(self) -> Access:
        """The link with the node's namespace."""
        if self.link is None:
            raise Refused(f"{self.name} has no link yet")
        return Access(self.link, self.ns_fd)
