"""The delivery method of one link, ready to be used."""

from nodes.delivery import METHODS
from nodes.delivery.base import Assembler, Scheduler
from nodes.runtime.config import Method


class LinkMethod:
    """Both sides of the method, with their parameters; ValueError with a sentence if these are wrong."""

    def __init__(self, chosen: Method) -> None:
        self._delivery = METHODS[chosen.method]
        self._parameters = chosen.parameters
        self.needs = self._delivery.needs(chosen.parameters)
        self.scheduler()
        self.assembler()

    def scheduler(self) -> Scheduler:
        """A queue for a link."""
        return self._delivery.scheduler(self._parameters)

    def assembler(self) -> Assembler:
        """What puts together the chunks of one connection."""
        return self._delivery.assembler(self._parameters)
