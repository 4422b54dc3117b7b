"""Partitions in the core: each group has a routing table in which the addresses of the other groups are black holes.

A packet still crosses its sender's link, and is captured there; the core drops it silently. A node in no group reaches
all others. Nodes behind one router meet before the core: they cannot be in two groups.
"""

from collections.abc import Sequence

from testbed.links import requests
from testbed.links.netlink import Request, netlink

_FIRST_TABLE = 1_000
_TABLES_EACH = 1_000  # a partition can have so many groups


def partition(number: int, groups: Sequence[Sequence[str]]) -> None:
    """Separate the addresses of these groups from each other."""
    with netlink() as core:
        core.do([request for holes, _ in _requests(number, groups) for request in holes])


def heal(number: int, groups: Sequence[Sequence[str]]) -> None:
    """End this partition."""
    with netlink() as core:
        core.do([request for _, mended in _requests(number, groups) for request in mended])


def _requests(
    number: int, groups: Sequence[Sequence[str]]
) -> list[tuple[list[Request], list[Request]]]:
    """For each group the requests that separate it, and those that undo it. Rules are added last and deleted first."""
    found = []
    for place, group in enumerate(groups):
        table = _FIRST_TABLE + number * _TABLES_EACH + place
        others = [address for other in groups if other is not group for address in other]
        found.append(
            (
                [
                    *(requests.add_blackhole(address, table) for address in others),
                    *(requests.add_rule(address, table) for address in group),
                ],
                [
                    *(requests.delete_rule(address, table) for address in group),
                    *(requests.delete_blackhole(address, table) for address in others),
                ],
            )
        )
    return found
