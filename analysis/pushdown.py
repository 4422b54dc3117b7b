"""The conditions that Spark leaves to a data source, on whole batches. As in SQL, what is unknown is not fulfilled."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)


def _same(column: pa.Array, value: Any) -> pa.Array:
    """Equal, or both unknown."""
    if value is None:
        return pc.is_null(column)
    return pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)


def _among(column: pa.Array, values: Any) -> pa.Array:
    known = [value for value in values if value is not None]
    found = pc.is_in(column, pa.array(known, column.type))
    said_no = pa.scalar(False if len(known) == len(values) else None, pa.bool_())
    return pc.if_else(pc.is_valid(column), pc.if_else(found, True, said_no), None)


def _compared(compare: Any) -> Callable[[pa.Array, Any], pa.Array]:
    return lambda column, value: compare(column, pa.scalar(value, column.type))


CONDITIONS: dict[type[Filter], Callable[[pa.Array, Any], pa.Array]] = {
    EqualTo: _compared(pc.equal),
    GreaterThan: _compared(pc.greater),
    GreaterThanOrEqual: _compared(pc.greater_equal),
    LessThan: _compared(pc.less),
    LessThanOrEqual: _compared(pc.less_equal),
    EqualNullSafe: _same,
    In: _among,
    IsNull: lambda column, _: pc.is_null(column),
    IsNotNull: lambda column, _: pc.is_valid(column),
}


def is_known(condition: Filter) -> bool:
    """Whether it can be judged here; Spark judges the others."""
    if isinstance(condition, Not):
        return is_known(condition.child)
    return type(condition) in CONDITIONS


def wanted(condition: Filter, batch: pa.RecordBatch) -> pa.Array:
    """Whether each row fulfils the condition; null where nobody can tell."""
    if isinstance(condition, Not):
        return pc.invert(wanted(condition.child, batch))
    told = vars(condition)
    return CONDITIONS[type(condition)](batch.column(told["attribute"][0]), told.get("value"))
