"""Spark: its session, its Java, signals, and shipping our code to a cluster."""
