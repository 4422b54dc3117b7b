"""The papers that `testbed reproduce` knows. A new one is a module here and a name below."""

from testbed.cli.papers.banno2013 import BANNO2013
from testbed.cli.papers.base import Asked, Reproduction, refuse_strange_options
from testbed.cli.papers.kawakami2016 import KAWAKAMI2016
from testbed.cli.papers.kita2025 import KITA2025
from testbed.cli.papers.lee2016 import LEE2016
from testbed.cli.papers.ogawa import OGAWA

PAPERS: dict[str, Reproduction] = {
    paper.name: paper for paper in (BANNO2013, KAWAKAMI2016, KITA2025, LEE2016, OGAWA)
}

__all__ = ["PAPERS", "Asked", "Reproduction", "refuse_strange_options"]
