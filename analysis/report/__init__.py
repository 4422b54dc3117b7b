"""Writes report.html and its charts from summary.json and the Parquet files of the metrics, without Spark."""
