"""What the analysis must know of a lab: which node is which cell, the model's values, the thesis' results.

It is `paper` of the run's manifest; the numbers themselves come from the captures.
"""

from dataclasses import asdict
from typing import Any

from testbed.papers.lee2016 import model
from testbed.papers.lee2016.cells import Cell, Lab, short_name
from testbed.papers.lee2016.model import ALL, DEFAULT, DMPQ_1443, DMPQ_10000, PQ_PC
from testbed.papers.lee2016.topology_text import MESSAGES, urgent_topic

# What the thesis reports in its text, and which figure shows what. A number that is not here is not known.


LARGEST_DELAY_S = {  # of urgent messages at 7 kB/s
    DEFAULT.key: 622.48,
    PQ_PC.key: 15.20,
    DMPQ_10000.key: 1.59,
    DMPQ_1443.key: 0.37,
}
LARGEST_DELAY_RATE = 7  # kB/s
GROWTH = 0.5  # seconds each second, `default` at 7 kB/s ("about")

# The figures follow each other as the experiments do; which number shows which rate is inferred from that order.
SHARES_BY_METHOD = {"5.5": 10, "5.6": 11, "5.7": 13, "5.8": 15, "5.9": 17, "5.10": 20}
SHARES_BY_DV = {"5.14": 7, "5.15": 9, "5.16": 11, "5.17": 15, "5.18": 20}


def numbers() -> dict[str, Any]:
    """All of it, for the analysis."""
    return {
        "largest_delay_s": LARGEST_DELAY_S,
        "largest_delay_rate_kBps": LARGEST_DELAY_RATE,
        "growth": GROWTH,
        "shares_by_method": SHARES_BY_METHOD,
        "shares_by_dv": SHARES_BY_DV,
    }


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
        "thesis": numbers(),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    bound = model.bound(cell.series, cell.rate)
    return {
        "experiment": short_name(cell.experiment),
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
