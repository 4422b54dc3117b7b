"""datagrams: UDP flows, one row for each pair of addresses and ports on each link and direction."""

import pyarrow as pa

from analysis.protocols.udp import DATAGRAMS

SCHEMA = pa.schema(list(DATAGRAMS))
