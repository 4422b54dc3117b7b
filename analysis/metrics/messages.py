"""messages: one row for each message on each link it crossed, as captured there."""

import pyarrow as pa

from analysis.protocols.messages import SIGHTING

SCHEMA = pa.schema(list(SIGHTING))
