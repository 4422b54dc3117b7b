"""Collecting periodic sensor data over a Skip Graph (Kawakami 2016).

`rules` says who stands where, and to whom data is passed on its way to the subscriber.
"""
