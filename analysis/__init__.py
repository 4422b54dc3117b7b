"""Measures runs with PySpark: from captures to hops, overhead and delay, and the report."""
