"""Other people's programs on our links, with real containers."""

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
name: guests
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
    path = places / "guests.yaml"
    (places / "index.txt").write_text("through two shaped links\n")
    path.write_text(FILE.format(image=image))
    return path


def output(testbed_json: Command, node: str) -> list[str]:
    return [line["text"] for line in testbed_json("logs", "guests", node)]


def kill(places: Path, node: str) -> None:
    (victim,) = (
        box for box in external_containers(LabPlace(places / "s" / "guests")) if box.node == node
    )
    container = engine().containers.get(victim.id)
    container.kill()
    container.wait(timeout=30)


def test_a_guest_waits_for_its_link_talks_by_name_and_leaves_its_output(
    file: Path,
    testbed: Command,
    testbed_json: Command,
    places: Path,
    wait_until: Callable[..., None],
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    status = {node["name"]: node for node in testbed_json("status", "guests")["labs"][0]["nodes"]}
    assert {node["state"] for node in status.values()} == {"running"}
    wait_until(lambda: "from client" in output(testbed_json, "client"))

    kill(places, "client")
    after = {node["name"]: node for node in testbed_json("status", "guests")["labs"][0]["nodes"]}
    assert (after["client"]["state"], after["server"]["state"]) == ("silent", "running")
    played = testbed("play", "guests")
    assert played.returncode == 3
    assert "while the scenario was played: the program of client does not run" in played.stderr
    testbed_json("up", file)
    wait_until(lambda: output(testbed_json, "client").count("from client") == 2)

    assert testbed("down", "guests").returncode == 0
    run = places / "c" / up["run"]
    logged = (run / "logs" / "client.jsonl").read_text().splitlines()
    said = [json.loads(line)["text"] for line in logged]
    assert said[0] == "through two shaped links"
    assert said.count("from client") == 2, "of both containers"
    capture = json.loads((run / "run.json").read_text())["capture"]
    assert all(capture[link]["packets"] > 10 for link in ("valley", "server", "client"))


def test_an_edit_is_seen_by_the_guest_that_it_concerns_and_new_names_by_all(
    file: Path, testbed_json: Command, places: Path, wait_until: Callable[..., None]
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    wait_until(lambda: "from client" in output(testbed_json, "client"))
    lab = LabPlace(places / "s" / "guests")
    before = {box.node: box.id for box in external_containers(lab)}

    (places / "index.txt").write_text("another text\n")
    text = file.read_text()
    server = text[text.index("  server:") : text.index("  client:")]
    file.write_text(text + server.replace("server:", "late:"))
    testbed_json("up", file)
    after = {box.node: box.id for box in external_containers(lab)}
    assert after["client"] == before["client"], "nothing of it has changed"
    assert after["server"] != before["server"]
    client = engine().containers.get(after["client"])
    wait_until(lambda: "another text" in asked(client, "server"))
    assert "another text" in asked(client, "late")
    log = (places / "c" / up["run"] / "logs" / "server.jsonl").read_text()
    assert "GET /index.txt" in log, "the first server's words are kept"


def asked(client: Any, server: str) -> str:
    found = client.exec_run(["wget", "-q", "-O", "-", f"http://{server}:8000/index.txt"])
    return str(found.output.decode())


def test_a_guest_that_ends_at_once_is_named_with_its_last_words(
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


def test_the_words_of_guests_outlive_a_lab_whose_keeper_was_killed(
    file: Path,
    testbed: Command,
    testbed_json: Command,
    places: Path,
    wait_until: Callable[..., None],
) -> None:
    up = testbed_json("up", file, "--backend", "docker")
    wait_until(lambda: "from client" in output(testbed_json, "client"))
    log = places / "c" / up["run"] / "logs" / "client.jsonl"
    log.unlink()
    (keeper,) = (p for p in marked(LabPlace(places / "s" / "guests")) if p.role == "keeper")
    os.kill(keeper.pid, signal.SIGKILL)
    assert testbed("down", "guests").returncode == 0
    assert "from client" in log.read_text()


def test_a_guest_has_no_way_out_of_its_lab(file: Path, testbed_json: Command, places: Path) -> None:
    testbed_json("up", file, "--backend", "docker")
    found = {box.node: box.id for box in external_containers(LabPlace(places / "s" / "guests"))}
    client = engine().containers.get(found["client"])
    assert asked(client, "server") == "through two shaped links\n"

    def run(*command: str) -> tuple[int, str]:
        done = client.exec_run(list(command))
        return done.exit_code, done.output.decode()

    for outside in ("192.0.2.1", "172.17.0.1", "10.78.0.1"):
        code, words = run("ping", "-c", "1", "-W", "2", outside)
        assert code != 0
        assert "unreachable" in words.lower(), words
    code, words = run("ip", "route", "add", "default", "via", "10.77.255.254")
    assert code != 0
    assert "not permitted" in words.lower()
    code, words = run("ip", "link", "set", "eth0", "down")
    assert code != 0
    links = run("ip", "-o", "link")[1].splitlines()
    assert len(links) == 2, "lo and eth0"


def test_guests_are_refused_where_there_are_no_containers(file: Path, testbed: Command) -> None:
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

    def heard() -> set[str]:
        lines = testbed_json("logs", "mosquitto", "prefecture")
        return {word for line in lines for word in line["text"].split() if "/" in word}

    wanted = {f"readings/sensors-{n}" for n in range(3)}
    wait_until(lambda: wanted <= heard())
    assert testbed("down", "mosquitto").returncode == 0
    capture = places / "c" / up["run"] / "pcap" / "prefecture.pcap"
    published = subprocess.run(
        ["tshark", "-r", capture, "-Y", "mqtt.msgtype == 3", "-T", "fields", "-e", "mqtt.topic"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert wanted <= {topic for line in published.stdout.split() for topic in line.split(",")}
