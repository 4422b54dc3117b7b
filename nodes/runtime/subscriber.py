"""A subscriber: it wants topics, and logs what it gets (the application, as far as the testbed goes)."""

from nodes.runtime.client import Client


class Subscriber(Client):
    """The subscriber's shell: everything is in the core's Deliver actions."""
