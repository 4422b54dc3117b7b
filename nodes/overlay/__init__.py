"""Overlays: which nodes get a message. Pure cores: no socket, no event loop, no clock, no global random.

A new overlay is one class like `star.Star` and one line here; a new topic method between brokers is one line in
`methods` and its name here. The modules of a method are loaded when a broker is made with it, because a sensor needs
none of them, and a Pi has little memory.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from nodes.overlay.base import Overlay, OverlayFactory, Station
from nodes.plugins import OVERLAYS, Registry

BETWEEN_BROKERS = (
    "sg-tbps",
    "psg-tbps",
    "atm-tbps",
    "patm-tbps",
    "fan-tbps",
    "scribe",
    "collection",
    "zorder-map",
)


def _star(station: Station, parameters: Mapping[str, Any], random: Random) -> Overlay:
    from nodes.overlay.star import star

    return star(station, parameters, random)


def _broker(method: str) -> OverlayFactory:
    def make(station: Station, parameters: Mapping[str, Any], random: Random) -> Overlay:
        from nodes.overlay.broker.broker import broker_with
        from nodes.overlay.methods import TOPIC_METHODS

        return broker_with(method, TOPIC_METHODS[method])(station, parameters, random)

    return make


METHODS: Registry[OverlayFactory] = Registry(
    OVERLAYS,
    {"star": _star, **{method: _broker(method) for method in BETWEEN_BROKERS}},
    lambda plugin: _broker(plugin.name),
)
