"""Mean over trials, and how far it is to be trusted: the 95 % interval by Student's t."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = Mapping[str, Any]
# Quantile 0.975 of Student's t for 1, 2, ... degrees of freedom; with more it is taken as for the last.
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def means(frame: "DataFrame", by: Sequence[str], values: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each group, in order; of each value a `spread`."""
    from pyspark.sql import functions as sf

    told = [
        column
        for value in values
        for column in (
            sf.avg(value).alias(f"{value}_mean"),
            sf.stddev_samp(value).alias(f"{value}_deviation"),
        )
    ]
    grouped = frame.groupBy(*by).agg(sf.count("*").alias("trials"), *told).collect()
    return [
        {
            **{name: row[name] for name in by},
            **{
                value: spread(row[f"{value}_mean"], row[f"{value}_deviation"], row["trials"])
                for value in values
            },
        }
        for row in sorted(grouped, key=lambda row: tuple(row[name] for name in by))
    ]


def spread(mean: float, deviation: float | None, trials: int) -> dict[str, Any]:
    """Of a single trial there is no interval."""
    if trials < 2 or deviation is None:
        return {"mean": mean, "low": None, "high": None, "trials": trials}
    half = STUDENT[min(trials - 1, len(STUDENT)) - 1] * deviation / math.sqrt(trials)
    return {"mean": mean, "low": mean - half, "high": mean + half, "trials": trials}
