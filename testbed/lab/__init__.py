"""A lab from `up` to `down`: one module for each command. All of them report their progress through events."""

from testbed.lab.down import bring_down
from testbed.lab.inject import inject
from testbed.lab.links import LinkView, change_links, known_profile, view_links
from testbed.lab.play import play
from testbed.lab.simulate import simulate
from testbed.lab.status import LabStatus, NodeStatus, lab_status
from testbed.lab.up import bring_up

__all__ = [
    "LabStatus",
    "LinkView",
    "NodeStatus",
    "bring_down",
    "bring_up",
    "change_links",
    "inject",
    "known_profile",
    "lab_status",
    "play",
    "simulate",
    "view_links",
]
