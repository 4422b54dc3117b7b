"""What has died of a lab besides its nodes: asked from its keeper."""

from testbed.backends.choice import BACKENDS, has_boards, here
from testbed.control import ControlError
from testbed.errors import TestbedError
from testbed.keeper.client import Keeper
from testbed.places import LabPlace
from testbed.records import LabRecord

NO_KEEPER = "its keeper has died, and its links and captures with it"
DEAD_WORKERS = {
    "relay": "the relay has died, and the links with it",
    "capture": "the capture has died: nothing is recorded any more",
}


def troubles(record: LabRecord) -> tuple[str, ...]:
    """Sentences on what has died; none if all is well."""
    if here(record.backend) not in BACKENDS:
        return ()
    keeper = Keeper.connect(LabPlace.of(record.name))
    if keeper is None:
        return (NO_KEEPER,)
    try:
        workers = keeper.status()["workers"]
    except ControlError:  # it has died since
        return (NO_KEEPER,)
    return tuple(words for role, words in DEAD_WORKERS.items() if workers.get(role) == "dead")


def refuse_the_dead(record: LabRecord) -> None:
    """TestbedError if nothing would arrive, or nothing would be recorded."""
    if dead := troubles(record):
        raise TestbedError(
            f"lab {record.name} is not whole: {'; '.join(dead)}",
            how_to_repair(record),
        )


def how_to_repair(record: LabRecord) -> str:
    """The command that makes a lab whole again."""
    if has_boards(record.backend):
        return f"`testbed deploy {record.source} --name {record.name} -i INVENTORY` repairs it"
    return f"`testbed up {record.source} --name {record.name}` repairs it"
