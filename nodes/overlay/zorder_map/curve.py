"""The Z-order curve: the bits of a point's coordinates taken in turn, so that many dimensions become one number.

Of two dimensions x and y the number is x1 y1 x2 y2 ... with the most significant bits in front; points that are close
together mostly stay close. The number never falls when a coordinate grows: of a box, the low corner comes first on the
curve and the high corner last.
"""

from functools import cache

Point = tuple[int, ...]


def interleave(point: Point, bits: int) -> int:
    """Where a point lies on the curve; each of its coordinates has `bits` bits."""
    dimensions = len(point)
    spread = _spread_bytes(dimensions)
    a_byte = 8 * dimensions
    z = 0
    for coordinate in point:
        if coordinate >> bits:
            raise ValueError(f"{point} has a coordinate that does not fit into {bits} bits")
        spread_out = spread[coordinate & 0xFF]
        rest, at = coordinate >> 8, a_byte
        while rest:
            spread_out |= spread[rest & 0xFF] << at
            rest >>= 8
            at += a_byte
        z = z << 1 | spread_out
    return z


def deinterleave(z: int, dimensions: int, bits: int) -> Point:
    """The point that lies there on the curve."""
    if dimensions < 1:
        raise ValueError("a point has at least one dimension")
    if z >> dimensions * bits:
        raise ValueError(f"{z} is not on the curve of {dimensions} dimensions of {bits} bits")
    digits = f"{z:0{dimensions * bits}b}"
    return tuple([int(digits[each::dimensions], 2) for each in range(dimensions)])


@cache
def _spread_bytes(dimensions: int) -> tuple[int, ...]:
    """Each byte with its bits `dimensions` apart."""
    if dimensions < 1:
        raise ValueError("a point has at least one dimension")
    return tuple(
        sum((byte >> bit & 1) << bit * dimensions for bit in range(8)) for byte in range(256)
    )
