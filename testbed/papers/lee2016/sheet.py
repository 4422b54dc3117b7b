"""What the analysis must know of a lab: which node is which cell, what the model says of it, what the thesis found.

It stands in the run's manifest, as `paper`; the numbers themselves come from the captures.
"""

from dataclasses import asdict
from typing import Any

from testbed.papers.lee2016 import model, thesis
from testbed.papers.lee2016.cells import Cell, Lab, word
from testbed.papers.lee2016.messages import MESSAGES, urgent_topic
from testbed.papers.lee2016.series import ALL


def sheet(lab: Lab) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        "name": "lee2016",
        "scale": lab.scale,
        "emulator": str(lab.emulator),
        "seconds": lab.seconds,
        "urgent_topics": sorted({urgent_topic(c.experiment, c.series) for c in lab.cells}),
        "messages_of_traffic": MESSAGES,
        "standard_period_s": model.SM_PERIOD_S,
        "series": [{"key": way.key, "title": way.title} for way in ALL],
        "cells": {cell.node: _cell(cell) for cell in lab.cells},
        "thesis": thesis.numbers(),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    bound = model.bound(cell.series, cell.rate)
    return {
        "experiment": word(cell.experiment),
        "rate_kBps": cell.rate_kbps,
        "series": cell.series.key,
        "method": cell.series.method,
        "dv": cell.series.dv,
        "ack": dict(cell.series.parameters).get("ack"),
        "standard_s": model.standard_s(cell.rate),
        "growth": model.growth(cell.rate),
        "bound": asdict(bound) if bound else None,
        "packets_of_standard": model.packets_of_standard(cell.series),
    }
