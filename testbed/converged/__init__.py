"""Skip Graphs of up to 100,000 nodes as they are once no node joins or leaves, and pub/sub methods evaluated on them.

Nothing is sent here: lists are built by sorting, and all publications of a topic are followed at once as array
operations. The same overlays as message protocols are in `nodes.overlay`; tests hold the two against each other.
Beside them is a Publish/Subscribe map, `zorder_map`, whose nodes own stretches of a curve through a space.
All functions are pure: a seed in, arrays or rows out.
"""

from testbed.converged.atm import measure_mixed, measure_tables
from testbed.converged.collection import measure_collection
from testbed.converged.graph import converge
from testbed.converged.load import measure_load
from testbed.converged.population import PATTERNS, Population, population
from testbed.converged.topics import measure_topics
from testbed.converged.zorder_levelling import measure_levelling

__all__ = [
    "PATTERNS",
    "Population",
    "converge",
    "measure_collection",
    "measure_levelling",
    "measure_load",
    "measure_mixed",
    "measure_tables",
    "measure_topics",
    "population",
]
