"""Where a node sends everything to."""

import pytest

from testbed.links.spec import GATEWAY_MAC, LinkSpec


def link(address: str, prefix_length: int) -> LinkSpec:
    return LinkSpec("n", 1, address, prefix_length, "02:74:62:00:00:01", 1500, "")


@pytest.mark.parametrize(
    ("address", "prefix_length", "network", "gateway"),
    [
        ("10.77.0.1", 16, "10.77.0.0", "10.77.255.254"),
        ("10.77.200.3", 16, "10.77.0.0", "10.77.255.254"),
        ("192.0.2.130", 25, "192.0.2.128", "192.0.2.254"),
    ],
)
def test_the_gateway_has_the_last_usable_address_of_the_prefix(
    address: str, prefix_length: int, network: str, gateway: str
) -> None:
    spec = link(address, prefix_length)
    assert (spec.network, spec.gateway) == (network, gateway)


def test_no_node_has_the_gateways_mac_address() -> None:
    assert GATEWAY_MAC == "02:74:62:00:00:00"  # that of number 0; nodes count from 1
