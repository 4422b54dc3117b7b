"""Measurements of brokers: the cost of one, the forming of an overlay, its idle traffic, and mosquitto beside them."""
