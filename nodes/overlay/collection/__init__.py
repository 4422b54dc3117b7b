"""Collecting periodic sensor data over a Skip Graph (Kawakami 2016).

`keys` says who stands where, `rules` to whom data is passed on its way to the subscriber.
"""
