"""The same labs without root, in a user namespace, as the user `nobody`."""

import json

import pytest

pytestmark = [pytest.mark.netns, pytest.mark.root]


def test_the_probe_finds_namespaces_without_root(nobody) -> None:
    done = nobody.python("-m", "testbed.links.probe")
    found = json.loads(done.stdout)
    assert (found["namespaces"], found["reason"]) == (True, "in a user namespace, without root")


def test_labs_run_and_leave_nothing_without_root(nobody) -> None:
    done = nobody.python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/integration/links/test_netns_backend.py",
        "-k",
        "starts_delivers or dead_node or keeper_was_killed or (congestion_control and (reno or cubic))",
        cwd=nobody.source,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    assert "skipped" not in done.stdout


def test_a_tap_device_without_permission_is_reported_with_a_hint(nobody) -> None:
    code = (
        "from testbed.links.probe import probe_machine; from testbed.links.emulator import choose;"
        "from testbed.topology.model import Emulator, Shape;"
        "from testbed.errors import MissingCapability\n"
        "try: choose(Emulator.RELAY, [Shape(delay_s=1)], probe_machine().capabilities)\n"
        "except MissingCapability as missing: print(missing.message, '|', missing.hint)"
    )
    done = nobody.python("-c", code, tun=0o600)
    assert "cannot open /dev/net/tun: Permission denied" in done.stdout, done.stderr
    assert "chmod 666 /dev/net/tun" in done.stdout


SHARED_LINK = """
name: shared
nodes:
  mast: {{kind: router, link: narrow}}
  broker: {{kind: broker}}
  sensor: {{kind: sensor, router: mast}}
links:
  emulator: {emulator}
  profiles:
    narrow: {{both: {{rate: 1Mbit/s}}}}
"""


@pytest.mark.parametrize("emulator", ["relay", "tbf"])
def test_a_shared_link_needs_no_root(nobody, emulator: str) -> None:
    file = nobody.home / "shared.yaml"
    file.write_text(SHARED_LINK.format(emulator=emulator))
    up = nobody.python("-m", "testbed", "up", str(file), "--backend", "netns", "--json")
    down = nobody.python("-m", "testbed", "down", "shared")
    assert up.returncode == 0, up.stdout + up.stderr  # the sensor has reached the broker
    assert down.returncode == 0, down.stdout + down.stderr
