"""The cells of the experiment: each is one subscriber on a link of its own, one rate and one way of sending.

All cells of a lab get the same messages at the same times, so that only the way of sending differs.
Time can be scaled: with `scale` k the links are k times as fast and the messages come k times as often; delays are
then multiplied by k. Sizes stay, so the picture is the same; what does not scale is the machine itself.
"""

from dataclasses import dataclass
from enum import IntEnum

from testbed.papers.lee2016 import model
from testbed.papers.lee2016.model import Series
from testbed.topology.model import Emulator

THOUSAND = 1_000
ALL_RATES = tuple(range(4, 21))  # kB/s


class Experiment(IntEnum):
    """The thesis' experiments; the first and the third need the same cells."""

    DELAY = 1  # of urgent messages, by rate, method and DV
    TRAFFIC = 2  # bytes and packets


@dataclass(frozen=True, slots=True)
class Cell:
    """One rate and one way of sending."""

    experiment: Experiment
    series: Series
    rate_kbps: int  # thousands of bytes a second, as the thesis has it

    @property
    def node(self) -> str:
        """The name of its subscriber."""
        return f"{short_name(self.experiment)}-{self.series.key}-{self.rate_kbps}"

    @property
    def rate(self) -> float:
        """Bytes a second, not scaled."""
        return float(self.rate_kbps * THOUSAND)


def short_name(experiment: Experiment) -> str:
    """As nodes and topics name it."""
    return experiment.name.lower()


@dataclass(frozen=True, slots=True)
class Lab:
    """Cells that run side by side."""

    name: str
    emulator: Emulator
    scale: int
    seconds: int  # how long urgent messages come, not scaled
    cells: tuple[Cell, ...]

    @property
    def rates(self) -> tuple[int, ...]:
        return tuple(sorted({cell.rate_kbps for cell in self.cells}))

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        return tuple(sorted({cell.experiment for cell in self.cells}))


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of the thesis: its labs, one after the other."""

    labs: tuple[Lab, ...]

    @property
    def scale(self) -> int:
        """Of the first lab, from which the figures are."""
        return self.labs[0].scale


def cells(
    experiment: Experiment, ways: tuple[Series, ...], rates: tuple[int, ...]
) -> tuple[Cell, ...]:
    """Each way at each rate."""
    return tuple(Cell(experiment, way, rate) for way in ways for rate in rates)


FULL = Extent(
    (
        Lab(
            "lee2016",
            Emulator.TBF,
            1,
            1_000,
            cells(Experiment.DELAY, model.ALL, ALL_RATES)
            + cells(Experiment.TRAFFIC, model.ALL, ALL_RATES),
        ),
        Lab(
            "lee2016-relay",
            Emulator.RELAY,
            8,
            1_000,
            cells(Experiment.DELAY, model.ALL, (7, 10, 15)),
        ),
    )
)
QUICK = Extent(
    (
        Lab(
            "lee2016-quick",
            Emulator.TBF,
            5,
            180,
            cells(Experiment.DELAY, model.FEW, (7, 10, 15))
            + cells(Experiment.TRAFFIC, model.FEW, (7, 15)),
        ),
    )
)
