"""The process from which Spark forks its Python workers: it imports what they need once, before it forks."""

import pyspark.daemon

import analysis.follow
import analysis.scan  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
