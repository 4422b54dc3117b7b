"""Kawakami 2016: load and hops of collecting periodic sensor data, beside what the paper says."""
