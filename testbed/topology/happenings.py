"""The scenario of the file to what happens in it: who publishes what, what fails and changes."""

from testbed.topology.actions import KINDS, Actions
from testbed.topology.checking import Checking
from testbed.topology.link_profiles import LinkProfiles
from testbed.topology.model import Node, Scenario
from testbed.topology.publications import Publications
from testbed.topology.raw import RawEvent
from testbed.topology.source_map import Path
from testbed.topology.waits import Waits

THINGS = ("publish", *KINDS)


def scenario(checking: Checking, nodes: tuple[Node, ...], profiles: LinkProfiles) -> Scenario:
    """What happens; whatever is wrong with it goes to the problems."""
    raw = checking.file.scenario
    if raw is None:
        return Scenario()
    waits = Waits(checking, nodes)
    publications = Publications(checking, nodes, waits)
    actions = Actions(checking, nodes, profiles, waits)
    for place, event in zip(checking.shaped.events, raw.events, strict=True):
        path: Path = ("scenario", "events", place)
        if not _is_one_thing(checking, path, event):
            continue
        if event.publish is None:
            actions.add(path, event, raw.duration)
        elif not publications.add(path, event, event.publish, raw.duration):
            break
    return Scenario(
        raw.duration, raw.settle, tuple(publications.found), actions.in_order(), raw.speed
    )


def _is_one_thing(checking: Checking, path: Path, event: RawEvent) -> bool:
    """Each event is about one thing, so that it is clear what comes first."""
    written = [name for name in THINGS if getattr(event, name) is not None]
    if len(written) == 1:
        return True
    if not written and checking.shaped.sound(*path):
        checking.value(path, "nothing happens here", f"add one of {', '.join(THINGS)}")
    for name in written[1:]:
        checking.key(
            (*path, name), f"`{written[0]}` and `{name}` in one event", "make two events of them"
        )
    return False
