"""Scribe on the Skip Graph: a multicast tree for each topic, below the node that is the topic's root."""
