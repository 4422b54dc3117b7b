"""PySpark jobs from captures to hops, overhead and delay, and the report."""
