"""A table without rows."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType


def empty_table(spark: SparkSession, schema: str) -> DataFrame:
    """An empty table of this schema, without the Python process that `createDataFrame([], schema)` would start."""
    columns = StructType.fromDDL(schema)
    assert isinstance(columns, StructType)
    return spark.range(0).select(
        *(sf.lit(None).cast(column.dataType).alias(column.name) for column in columns.fields)
    )
