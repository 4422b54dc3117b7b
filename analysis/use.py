"""What a link carried in each unit of time, from its packets. Pure: columns in, rows out."""

import numpy as np
import pyarrow as pa

from analysis.link import DOWN, UP, upward
from analysis.messages import LinkPlace
from analysis.pcap import Packets

USE = pa.struct(
    [
        ("link", pa.string()),
        ("direction", pa.string()),
        ("from_ns", pa.int64()),
        ("packets", pa.int64()),
        ("bytes", pa.int64()),
    ]
)


def use_of(packets: Packets, place: LinkPlace, unit_ns: int, origin_ns: int) -> pa.StructArray:
    """A row for each direction and unit in which anything passed; units begin whole numbers of units from the origin.

    A packet counts, with all its bytes, in the unit in which it passed the capture point.
    """
    up = upward(packets, place)
    units = (packets.ts_ns - origin_ns) // unit_ns
    rows = []
    for direction, chosen in ((UP, up), (DOWN, ~up)):
        found, which = np.unique(units[chosen], return_inverse=True)
        counts = np.bincount(which, minlength=len(found))
        sizes = np.bincount(which, packets.wirelen[chosen], len(found))
        for unit, count, size in zip(found.tolist(), counts.tolist(), sizes.tolist(), strict=True):
            rows.append((place.name, direction, origin_ns + unit * unit_ns, count, round(size)))
    return pa.array(rows, USE)
