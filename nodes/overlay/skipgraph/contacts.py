"""How peers know each other: key, number of the node that owns it, and the node's membership vector."""

from dataclasses import dataclass

VECTOR_BITS = 64


@dataclass(frozen=True, slots=True)
class Contact:
    """One peer (a key) and its node. A node with several keys is several contacts with one number and vector."""

    key: bytes
    node: int
    vector: int

    def shares(self, other: "Contact", bits: int) -> bool:
        """Whether the first `bits` bits of both vectors are the same."""
        return (self.vector ^ other.vector) >> (VECTOR_BITS - bits) == 0


def vector_of(bits: str) -> int:
    """A membership vector that begins with these bits, as in the figures of papers; the rest is zero."""
    return int(bits.ljust(VECTOR_BITS, "0"), 2)
