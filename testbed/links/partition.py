"""The sides of a partition, kept apart in the core: a table of routes for each, in which the others are black holes.

A packet still crosses its sender's link, and is captured there; the core loses it without a word. Who is on no side
reaches all. Nodes behind one router meet in it, before the core: they cannot be on two sides.
"""

from collections.abc import Sequence

from testbed.links import requests
from testbed.links.netlink import Request, netlink

_FIRST_TABLE = 1_000
_TABLES_EACH = 1_000  # so many sides a partition can have


def partition(number: int, groups: Sequence[Sequence[str]]) -> None:
    """Addresses of these sides reach each other no more."""
    with netlink() as core:
        core.do([request for holes, _ in _requests(number, groups) for request in holes])


def heal(number: int, groups: Sequence[Sequence[str]]) -> None:
    """They do again, as far as this partition is concerned."""
    with netlink() as core:
        core.do([request for _, mended in _requests(number, groups) for request in mended])


def _requests(
    number: int, groups: Sequence[Sequence[str]]
) -> list[tuple[list[Request], list[Request]]]:
    """For each side what parts it from the others, and what ends that. Rules come last, and go first."""
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
