"""What the keeper is told of a link; apart from the wiring, so that whoever asks need not load netlink."""

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
        """Whom the node sends everything to: the core, under the last usable address of the lab's prefix."""
        return _ends(self.address, self.prefix_length)[1]


@lru_cache(maxsize=8192)
def _ends(address: str, prefix_length: int) -> tuple[str, str]:
    network = IPv4Interface(f"{address}/{prefix_length}").network
    return str(network.network_address), str(network.broadcast_address - 1)
