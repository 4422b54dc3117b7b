"""Kawakami 2016: load and hops of collecting periodic sensor data, compared with the paper."""
