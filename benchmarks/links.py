"""Are links what they were asked to be? Every built-in profile on every emulator, and beside them `tc ... tbf` by hand.

`python -m benchmarks.links [--seconds 30] [--emulator relay,tbf,netem] [--profiles NAME,...] [--json] [--check]`.
See docs/explanation/benchmarks.md. Rates count Ethernet frames where captures listen, from the first with data to
the last.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.support.harness import Report, interrupt_once
from testbed.errors import TestbedError
from testbed.lab.start.calibration import PATIENCE_S, Calibrator
from testbed.links.emulator import Capabilities
from testbed.links.probe import probe_machine
from testbed.places import LabPlace
from testbed.topology.model import Emulator, Profile, Shape
from testbed.topology.profiles import PROFILES

PEER = "tc tbf by hand"
WIDTH = 110  # columns of the tables
RATE_LIMIT = 0.03
DELAY_S, DELAY_SHARE = 0.002, 0.02
LONE = Profile("10kB/s", Shape(rate_bps=80_000), Shape(rate_bps=80_000))
EFFORT = {"skip_s": 0.0, "lone_s": 25.0, "sigmas": 3.5}
Result = dict[str, Any]


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.links", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of TCP in each direction")
    parser.add_argument("--emulator", default="", help="relay, tbf, netem; all there are")
    parser.add_argument("--profiles", default="", help="names of built-in profiles; all of them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit code 1 above a limit")
    asked = parser.parse_args()
    able = probe_machine().capabilities
    emulators = chosen(parser, asked.emulator, available(able))
    names = chosen(parser, asked.profiles, list(PROFILES))
    profiles = [*(PROFILES[name] for name in names), LONE]
    interrupt_once()
    folder = Path(tempfile.mkdtemp(prefix="testbed-links-"))
    measured: dict[str, list[Result]] = {}
    try:
        for emulator in emulators:
            measured[emulator] = ours(folder, emulator, suited(emulator, profiles), asked.seconds)
        if able.tbf and shutil.which("tc"):
            measured[PEER] = peer(suited("tbf", profiles), asked.seconds)
    except TestbedError as error:
        print(f"error: {error.message}\n  → {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; everything was taken back", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder)
    report = reported(measured, asked.seconds)
    if asked.json:
        report.details["links"] = measured
    else:
        Console(highlight=False, width=WIDTH).print(
            *(table(name, found) for name, found in measured.items())
        )
    report.show(asked.json)
    return 1 if asked.check and report.above else 0


def chosen(parser: argparse.ArgumentParser, asked: str, known: list[str]) -> list[str]:
    """The requested names, or all."""
    names = asked.split(",") if asked else known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no {', '.join(unknown)} here; there is {', '.join(known)}")
    return names


def available(able: Capabilities) -> list[str]:
    """The emulators that this machine has."""
    has = {"relay": not able.tun, "tbf": able.tbf, "netem": able.netem}
    return [name for name, there in has.items() if there]


def suited(emulator: str, profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles that this emulator supports: a token bucket has rates and queues only."""
    if emulator != "tbf":
        return list(profiles)

    def rate_only(shape: Shape) -> Shape:
        return Shape(rate_bps=shape.rate_bps, queue_bytes=shape.queue_bytes)

    return [replace(one, up=rate_only(one.up), down=rate_only(one.down)) for one in profiles]


def ours(folder: Path, emulator: str, profiles: Sequence[Profile], seconds: float) -> list[Result]:
    """Measure links as labs have them, with the measuring process of labs."""
    place = LabPlace(folder / f"links-{emulator}")
    with Calibrator(place, "benchmark", Emulator(emulator)) as calibrator:
        calibrator.ask("full", profiles, effort={**EFFORT, "seconds": seconds})
        return calibrator.results(
            lambda words: print(
                f"{emulator}: {words['what']} ({words['done']} of {words['of']})", file=sys.stderr
            ),
            PATIENCE_S + 2 * seconds,
        )


def peer(profiles: Sequence[Profile], seconds: float) -> list[Result]:
    """Make the same measurement on links made by hand."""
    print(f"{PEER} ...", file=sys.stderr)
    question = {
        "profiles": [asdict(profile) for profile in profiles],
        "effort": {**EFFORT, "seconds": seconds},
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.support.peer_tbf", str(os.getpid())],
        input=json.dumps(question) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
    )
    answer = json.loads(done.stdout)
    if not answer["ok"]:
        raise TestbedError(f"{PEER}: {answer['error']}")
    results: list[Result] = answer["results"]
    return results


def reported(measured: dict[str, list[Result]], seconds: float) -> Report:
    """The worst of each emulator beside the limits, and the peer without limits."""
    report = Report({})
    for emulator, found in measured.items():
        if emulator == PEER:
            report.details[f"{PEER}: worst rate"] = worst(found, rate_off)
            continue
        for what, off, limit in (
            ("rate", rate_off, RATE_LIMIT),
            ("delay", delay_off, 1.0),
            ("lone_1kB", lone_off, 1.0),
        ):
            if what == "lone_1kB" and emulator == "tbf":
                continue  # its stored credit lets a lone packet pass
            name = f"{emulator}_{what}_off"
            report.limits[name] = limit
            report.ratios[name] = worst(found, off)
    report.details["seconds of TCP"] = seconds
    return report


def worst(found: Sequence[Result], off: Callable[[Result], float]) -> float:
    """The largest value of all links; infinite if a link could not be measured."""
    return round(max(off(result) for result in found), 4)


def rate_off(result: Result) -> float:
    """The error of the rate, as a share of the requested rate."""
    asked, achieved = result["asked"]["rate_bps"], result["achieved"]["rate_bps"]
    return math.inf if achieved is None else abs(float(achieved / asked) - 1)


def delay_off(result: Result) -> float:
    """The error of the median delay, as a share of 2 ms + 2 %."""
    asked, achieved = result["asked"]["delay_s"], result["achieved"]["delay_s"]
    if achieved is None:
        return math.inf
    return float(abs(achieved - asked) / (DELAY_S + DELAY_SHARE * asked))


def lone_off(result: Result) -> float:
    """The same error for a lone packet of 1 kB on the link of 10 kB/s; 0 for other links."""
    if result["profile"] != LONE.name:
        return 0.0
    lone = result["lone_1kB"]
    if lone is None:
        return math.inf
    off = abs(lone["achieved_s"] - lone["asked_s"])
    return float(off / (DELAY_S + DELAY_SHARE * lone["asked_s"]))


def table(name: str, found: Sequence[Result]) -> Table:
    """One row for each link."""
    shown = Table(title=name)
    for column in ("profile", "direction"):
        shown.add_column(column, no_wrap=True)
    for column in ("asked kbit/s", "achieved / asked", "asked ms", "achieved ms", "lone 1 kB ms"):
        shown.add_column(column, justify="right")
    for result in found:
        asked, achieved, lone = result["asked"], result["achieved"], result["lone_1kB"]
        ratio = (achieved["rate_bps"] or math.nan) / asked["rate_bps"]
        shown.add_row(
            result["profile"],
            result["direction"],
            f"{asked['rate_bps'] / 1000:g}",
            f"{ratio:.4f}",
            f"{asked['delay_s'] * 1000:g}",
            "none" if achieved["delay_s"] is None else f"{achieved['delay_s'] * 1000:.2f}",
            f"{lone['achieved_s'] * 1000:.2f}" if lone else "",
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
