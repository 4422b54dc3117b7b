"""A link as the keeper is asked for it, and its attachment: the namespaces of its two ends.

Apart from the wiring, so that a client of the keeper does not load netlink.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Interface

GATEWAY_MAC = "02:74:62:00:00:00"  # as a node with the number 0, which there is not


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """One access link as the keeper is asked to make it."""

    node: str
    number: int
    address: str
    prefix_length: int
    mac: str
    mtu: int
    alias: str
    behind: str | None = None  # the router at the far end; None: the core
    tcp: str | None = None  # congestion control of the node's connections; None: the kernel's own
    beyond: bool = False  # whether the lab has nodes elsewhere: the core then knows the way to them

    @property
    def far_if(self) -> str:
        """The link's other end, in the core or in the router's namespace."""
        return f"l{self.number}"

    @property
    def network(self) -> str:
        """The first address of the lab's prefix."""
        return _ends(self.address, self.prefix_length)[0]

    @property
    def gateway(self) -> str:
        """The node's default gateway: the core, under the last usable address of the lab's prefix."""
        return _ends(self.address, self.prefix_length)[1]


@lru_cache(maxsize=8192)
def _ends(address: str, prefix_length: int) -> tuple[str, str]:
    network = IPv4Interface(f"{address}/{prefix_length}").network
    return str(network.network_address), str(network.broadcast_address - 1)


# A link with the namespaces of its ends.


@dataclass(frozen=True, slots=True)
class Attachment:
    """A link and the namespace of its node; behind a router, also the router's own link, and so on to the core."""

    spec: LinkSpec
    ns_fd: int
    router: "Attachment | None" = None
    is_router: bool = False

    @property
    def far_fd(self) -> int | None:
        """The namespace of the far end; None: the core."""
        return None if self.router is None else self.router.ns_fd

    @property
    def routers(self) -> "tuple[Attachment, ...]":
        """The links of the routers between this link and the core, the nearest to it first."""
        return () if self.router is None else (self.router, *self.router.routers)


def by_far_end(links: Iterable[Attachment]) -> Iterator[tuple[int | None, list[Attachment]]]:
    """The links that end in the core, then those of each router: nearer to the core first."""
    groups: dict[int | None, list[Attachment]] = {}
    for link in links:
        groups.setdefault(link.far_fd, []).append(link)
    for far_fd in sorted(groups, key=lambda fd: len(groups[fd][0].routers)):
        yield far_fd, groups[far_fd]
