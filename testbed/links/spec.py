"""What the keeper is told of a link; apart from the wiring, so that whoever asks need not load netlink."""

from dataclasses import dataclass


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

    @property
    def core_if(self) -> str:
        """The link's end in the core."""
        return f"l{self.number}"
