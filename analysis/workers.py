"""The process from which Spark forks its Python workers: it imports what they need once, before it forks."""

from analysis.without_pandas import leave_out_if_asked

leave_out_if_asked()

import pyspark.daemon  # noqa: E402

import analysis.follow  # noqa: E402
import analysis.scan  # noqa: E402, F401

if __name__ == "__main__":
    pyspark.daemon.manager()
