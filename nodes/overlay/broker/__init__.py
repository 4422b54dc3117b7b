"""Brokers that form an overlay among themselves, with any of the topic methods (`nodes.overlay.topics`)."""
