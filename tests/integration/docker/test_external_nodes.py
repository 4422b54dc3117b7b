"""External nodes: programs of others run in real containers on links of the testbed."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.backends.docker.engine import engine
from testbed.backends.docker.external_nodes import external_containers
from testbed.backends.docker.image_recipe import NodeImage
from testbed.backends.docker.images import ImageOwner, ensure_image, own_platform
from testbed.keeper.processes import marked
from testbed.places import LabPlace
from testbed.progress import ignore

pytestmark = [pytest.mark.docker, pytest.mark.root, pytest.mark.netns]

Command = Callable[..., Any]

FILE = """
name: external
defaults: {{link: wifi}}
nodes:
  valley: {{kind: router, link: mvno-128k}}
  server:
    kind: external
    link: lan
    image: "{image}"
    command: trap exit TERM; python3 -m http.server 8000 --directory /srv/www & wait
    files: {{/srv/www/index.txt: index.txt}}
    port: 8000
  client:
    kind: external
    router: valley
    image: "{image}"
    command: >-
      trap exit TERM; until wget -q -O - http://server:8000/index.txt; do sleep 0.2; done; echo "$GREETING";
      cat /proc/net/route | wc -l; sleep 1000 & wait
    env: {{GREETING: "from {{node}}"}}
"""


@pytest.fixture
def file(places: Path) -> Path:
    image = ensure_image(NodeImage(own_platform(engine())), ImageOwner(ignore)).name
    path = places / "external.yaml"
    (places / "index.txt").write_text("through two shaped links\n")
    path.write_text(FILE.format(image=image))
    return path


def output(testbed_json: Command, node: str) -> list[str]:
    return [line["text"] for line in testbed_json("logs", "external", node)]


def kill(places: Path, node: str) -> None:
    running = external_containers(LabPlace(places / "s" / "external"))
    (victim,) = (container for container in running if container.node == node)
    container = engine().containers.get(victim.id)
    container.kill()
    container.wait(timeout=60)


def test_an_external_node_waits_for_its_link_resolves_names_and_leaves_its_output(
    file: Path,
    testbed: Command,
    testbed_json: Command,
    places: Path,
    wait_until: Callable[..., None],
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    status = {node["name"]: node for node in testbed_json("status", "external")["labs"][0]["nodes"]}
    assert {node["state"] for node in status.values()} == {"running"}
    wait_until(lambda: "from client" in output(testbed_json, "client"), 60)

    kill(places, "client")
    after = {node["name"]: node for node in testbed_json("status", "external")["labs"][0]["nodes"]}
    assert (after["client"]["state"], after["server"]["state"]) == ("silent", "running")
    played = testbed("play", "external")
    assert played.returncode == 3
    assert "while the scenario was played: the program of client does not run" in played.stderr
    testbed_json("up", file)
    wait_until(lambda: output(testbed_json, "client").count("from client") == 2, 60)

    assert testbed("down", "external").returncode == 0
    run = places / "c" / up["run"]
    logged = (run / "logs" / "client.jsonl").read_text().splitlines()
    texts = [json.loads(line)["text"] for line in logged]
    assert texts[0] == "through two shaped links"
    assert texts.count("from client") == 2, "of both containers"
    capture = json.loads((run / "run.json").read_text())["capture"]
    assert all(capture[link]["packets"] > 10 for link in ("valley", "server", "client"))


def test_up_replaces_an_edited_external_node_and_all_nodes_resolve_new_names(
    file: Path, testbed_json: Command, places: Path, wait_until: Callable[..., None]
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    wait_until(lambda: "from client" in output(testbed_json, "client"), 60)
    lab = LabPlace(places / "s" / "external")
    before = {each.node: each.id for each in external_containers(lab)}

    (places / "index.txt").write_text("another text\n")
    text = file.read_text()
    server = text[text.index("  server:") : text.index("  client:")]
    file.write_text(text + server.replace("server:", "late:"))
    testbed_json("up", file)
    after = {each.node: each.id for each in external_containers(lab)}
    assert after["client"] == before["client"], "the client has not changed"
    assert after["server"] != before["server"]
    client = engine().containers.get(after["client"])
    wait_until(lambda: "another text" in fetched(client, "server"), 60)
    assert "another text" in fetched(client, "late")
    log = (places / "c" / up["run"] / "logs" / "server.jsonl").read_text()
    assert "GET /index.txt" in log, "the output of the first server is kept"


def fetched(client: Any, server: str) -> str:
    found = client.exec_run(["wget", "-q", "-O", "-", f"http://{server}:8000/index.txt"])
    return str(found.output.decode())


def test_an_external_node_that_ends_at_once_is_named_with_its_last_output(
    file: Path, testbed: Command, testbed_json: Command
) -> None:
    text = file.read_text()
    server = "trap exit TERM; python3 -m http.server 8000 --directory /srv/www & wait"
    file.write_text(text.replace(server, "echo no such option >&2; exit 7"))
    failed = testbed("up", file, "--backend", "docker", "--json")
    error = json.loads(failed.stdout)
    assert failed.returncode == 1
    assert error["failed"] == ["server"]
    assert "server has ended (Exited (7)" in error["error"]["message"]
    assert "no such option" in error["error"]["message"]
    file.write_text(text)
    status = {node["name"]: node["state"] for node in testbed_json("up", file)["nodes"]}
    assert set(status.values()) == {"running"}


def test_down_saves_the_output_of_external_nodes_although_the_keeper_was_killed(
    file: Path,
    testbed: Command,
    testbed_json: Command,
    places: Path,
    wait_until: Callable[..., None],
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    wait_until(lambda: "from client" in output(testbed_json, "client"), 60)
    log = places / "c" / up["run"] / "logs" / "client.jsonl"
    log.unlink()
    (keeper,) = (p for p in marked(LabPlace(places / "s" / "external")) if p.role == "keeper")
    os.kill(keeper.pid, signal.SIGKILL)
    assert testbed("down", "external").returncode == 0
    assert "from client" in log.read_text()


def test_an_external_node_cannot_reach_anything_outside_its_lab(
    file: Path, testbed_json: Command, places: Path
) -> None:
    testbed_json("up", file, "--backend", "docker")
    found = {
        each.node: each.id for each in external_containers(LabPlace(places / "s" / "external"))
    }
    client = engine().containers.get(found["client"])
    assert fetched(client, "server") == "through two shaped links\n"

    def run(*command: str) -> tuple[int, str]:
        done = client.exec_run(list(command))
        return done.exit_code, done.output.decode()

    for outside in ("192.0.2.1", "172.17.0.1", "10.78.0.1"):
        code, text = run("ping", "-c", "1", "-W", "2", outside)
        assert code != 0
        assert "unreachable" in text.lower(), text
    code, text = run("ip", "route", "add", "default", "via", "10.77.255.254")
    assert code != 0
    assert "not permitted" in text.lower()
    code, text = run("ip", "link", "set", "eth0", "down")
    assert code != 0
    links = run("ip", "-o", "link")[1].splitlines()
    assert len(links) == 2, "lo and eth0"


def test_external_nodes_are_refused_by_a_backend_without_containers(
    file: Path, testbed: Command
) -> None:
    refused = testbed("up", file, "--backend", "netns")
    assert refused.returncode == 1
    assert "server, client: external nodes are containers" in refused.stderr
    assert "--backend docker" in refused.stderr


@pytest.mark.skipif(shutil.which("tshark") is None, reason="apt-get install tshark")
def test_mosquitto_serves_as_central_broker_on_our_links(
    testbed: Command,
    testbed_json: Command,
    repository: Path,
    places: Path,
    wait_until: Callable[..., None],
) -> None:
    up = testbed_json("up", repository / "topologies" / "mosquitto.yaml", "--backend", "docker")

    def received_topics() -> set[str]:
        lines = testbed_json("logs", "mosquitto", "prefecture")
        return {part for line in lines for part in line["text"].split() if "/" in part}

    wanted = {f"readings/sensors-{n}" for n in range(3)}
    wait_until(lambda: wanted <= received_topics(), 60)
    assert testbed("down", "mosquitto").returncode == 0
    capture = places / "c" / up["run"] / "pcap" / "prefecture.pcap"
    published = subprocess.run(
        ["tshark", "-r", capture, "-Y", "mqtt.msgtype == 3", "-T", "fields", "-e", "mqtt.topic"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert wanted <= {topic for line in published.stdout.split() for topic in line.split(",")}
