"""How the report formats values of a run's manifest."""

import pytest

from analysis.formatting import format_fact
from analysis.inputs.manifest import deliveries


def test_images_are_listed_with_sizes_and_short_digests():
    image = {"name": "node:1", "id": "sha256:6eaf9b78ff9882810d96bb9f", "size": 53_085_327}
    reported = format_fact(
        "images", {"linux/amd64": image, "linux/arm64": {**image, "name": "node:2"}}
    )[1]
    rest = "id sha256:6eaf9b78ff98, size 53.1 MB"
    assert reported.replace("\u00a0", " ") == (
        f"linux/amd64: name node:1, {rest}; linux/arm64: name node:2, {rest}"
    )


def test_unknown_values_are_left_out():
    limits = {
        "pi-3 linux/arm64": {"memory_bytes": 10**9, "cpu_share": None, "of_board_speed": 0.678}
    }
    name, reported = format_fact("limits", limits)
    assert name == "limits"
    assert reported.replace("\u00a0", " ") == (
        "pi-3 linux/arm64: memory 1.0 GB, of board speed 0.678"
    )


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("load_average", 5.267, ("load average", "5.27")),
        ("memory_bytes", 25_300_000_000, ("memory", "25.3 GB")),
        ("late_max_s", 0.0075, ("late max", "7.5 ms")),
        ("flags", ["a", "b"], ("flags", "a, b")),
        ("root", True, ("root", "True")),
    ],
)
def test_single_values_have_their_units(name, value, reported):
    assert tuple(text.replace("\u00a0", " ") for text in format_fact(name, value)) == reported


def test_links_with_another_delivery_than_the_labs_are_counted():
    fifo = {"method": "fifo", "parameters": []}
    divided = {"method": "dmpq-pc", "parameters": [["ack", "udp"], ["dv", 1443]]}
    old = {"delivery": fifo, "nodes": [{}, {}]}
    assert deliveries(old) == "fifo"
    nodes = [{"delivery": own} for own in (None, fifo, divided, divided)]
    assert deliveries({"delivery": fifo, "nodes": nodes}) == (
        "fifo; dmpq-pc (ack udp, dv 1443) on 2 links"
    )
