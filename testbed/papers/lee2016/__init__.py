"""Lee 2016: urgent messages first, over one WebSocket on a narrow link."""

from testbed.papers.lee2016.cells import FULL, QUICK, Cell, Extent, Lab
from testbed.papers.lee2016.sheet import sheet
from testbed.papers.lee2016.topology_text import topology_text

__all__ = ["FULL", "QUICK", "Cell", "Extent", "Lab", "sheet", "topology_text"]
