"""Brokers measured: what one costs, how many find one another, what an idle overlay says, and mosquitto beside them."""
