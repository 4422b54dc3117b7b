"""Collecting periodic sensor data over a Skip Graph (Kawakami 2016).

`rules` defines the nodes' keys and the next node for data on its way to the subscriber.
"""
