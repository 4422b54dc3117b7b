"""Overlays under any sequence of crashes, broken links, isolated brokers and moves keep the promises of custody."""

from hypothesis import settings

from support.overlays.broker_operations import BrokerOperations

TestBrokerOperations = BrokerOperations.TestCase
TestBrokerOperations.settings = settings(max_examples=12, stateful_step_count=12, deadline=None)
