"""How long a lab takes to come up and to go, beside docker-compose and Mininet. See docs/explanation/benchmarks.md.

`python -m benchmarks.bringup [--what docker,netns] [--count N] [--rounds N] [--json] [--check]`
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks.support import peer_mininet
from benchmarks.support.docker_engine import copy_images, image_in_use, own_engine
from benchmarks.support.harness import Report, run
from benchmarks.support.labs import BenchmarkLab, star
from benchmarks.support.peer_compose import Compose
from testbed.backends.docker.containers import LAB_DIR_LABEL

LIMITS = {"docker_up": 0.8, "docker_down": 0.5, "netns_up": 0.25, "netns_up_bare": 0.25}
DOCKER_COUNT, NETNS_COUNT = 200, 300
WARM_UP = 3  # nodes, not measured: this fills caches and makes the image


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bringup", description=__doc__)
    parser.add_argument("--what", default="docker,netns", help="docker, netns, or both")
    parser.add_argument("--count", type=int, help="nodes (docker: 200, netns: 300)")
    parser.add_argument("--rounds", type=int, default=1, help="how often; medians are compared")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    parts = {"docker": against_compose, "netns": against_mininet}
    chosen = asked.what.split(",")
    if unknown := set(chosen) - parts.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there is docker, netns")

    def measure(report: Report, folder: Path) -> None:
        for part in chosen:
            parts[part](report, folder, asked.count, asked.rounds)

    return run(Report(LIMITS), measure, as_json=asked.json, check=asked.check)


def against_compose(report: Report, folder: Path, count: int | None, rounds: int) -> None:
    """Compare ready containers on shaped, captured links with the same containers on a bridge."""
    count = count or DOCKER_COUNT
    with own_engine(folder) as address, ExitStack() as whatever_is_left:
        env = {"DOCKER_HOST": address}
        copy_images(address)

        def lab(name: str, nodes: int) -> BenchmarkLab:
            made = BenchmarkLab(name, folder, star(name, nodes, "mvno-128k"), "docker", env)
            whatever_is_left.callback(made.clear)
            return made

        def peer(lab: BenchmarkLab) -> Compose:
            made = Compose(lab.file, folder / f"compose-{lab.name}", image, env)
            whatever_is_left.callback(made.clear)
            return made

        small, big = lab("warm-up", WARM_UP), lab("bringup", count)
        small.up()
        image = image_in_use(address, f"{LAB_DIR_LABEL}={folder / 's' / small.name}")
        small.down()
        warm = peer(small)
        warm.up()
        warm.down()
        big.file.write_text(big.text)
        compose = peer(big)
        for _ in range(rounds):
            report.took("docker-compose up", compose.up())
            report.took("docker-compose down", compose.down())
            report.took("testbed up (docker)", big.up())
            report.took("testbed down (docker)", big.down())
    report.compare("docker_up", "testbed up (docker)", "docker-compose up")
    report.compare("docker_down", "testbed down (docker)", "docker-compose down")
    report.details["containers"] = count


def against_mininet(report: Report, folder: Path, count: int | None, rounds: int) -> None:
    """Compare nodes on shaped, captured links with Mininet's bare hosts, and with the same nodes on those hosts."""
    count = count or NETNS_COUNT
    peer_mininet.check()
    with ExitStack() as whatever_is_left:

        def lab(name: str, nodes: int) -> BenchmarkLab:
            made = BenchmarkLab(name, folder, star(name, nodes, "rate-only", "tbf"), "netns", {})
            whatever_is_left.callback(made.clear)
            return made

        small, big = lab("warm-up", WARM_UP), lab("bringup", count)
        small.up()
        small.down()
        peer_mininet.up_and_down(small.file, folder / "m")
        big.file.write_text(big.text)
        for _ in range(rounds):
            peer = peer_mininet.up_and_down(big.file, folder / "m")
            report.took("Mininet, bare hosts up", peer.bare_s)
            report.took("Mininet, nodes ready", peer.ready_s)
            report.took("Mininet, nodes and hosts gone", peer.down_s)
            up_s, ready_s = big.up_and_ready()
            report.took("testbed nodes ready (netns)", ready_s)
            report.took("testbed up (netns)", up_s)
            report.took("testbed down (netns)", big.down())
    report.compare("netns_up", "testbed nodes ready (netns)", "Mininet, nodes ready")
    report.compare("netns_up_bare", "testbed nodes ready (netns)", "Mininet, bare hosts up")
    report.details["hosts"] = count


if __name__ == "__main__":
    sys.exit(main())
