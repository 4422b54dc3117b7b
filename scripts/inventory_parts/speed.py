"""CPU time, imported modules and memory: of one tree, or of two in interleaved pairs."""

import functools
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripts.inventory_parts.running import DEMO, SAMPLE
from scripts.inventory_parts.trees import INSIDE, PRODUCT, Tree, say, scratch

LIMIT = 1.05
ROUNDS = 5
RESAMPLES = 2000
SETTLED_S = 1.0
COMMANDS = ("--help", "validate", "up", "analyze")


def _arguments(command: str, tree: Tree) -> list[str]:
    """`up` shows its plan only; `analyze` ends where it would start Spark."""
    return {
        "--help": ["--help"],
        "validate": ["validate", str(tree.folder / DEMO)],
        "up": ["up", str(tree.folder / DEMO), "--dry-run"],
        "analyze": ["analyze", str(tree.folder / SAMPLE)],
    }[command]


def cpu_s(tree: Tree, command: str) -> float:
    """The CPU time of one call."""
    with scratch() as folder:
        given = _arguments(command, tree)
        return tree.command(*given, cwd=folder, spark=False).cpu_s


def imported(tree: Tree, command: str) -> dict[str, int]:
    """How many modules a call imports: all, and those of the product."""
    with scratch() as folder:
        listing = folder / "modules.txt"
        tree.command(
            *_arguments(command, tree),
            cwd=folder,
            spark=False,
            variables={"INVENTORY_MODULES": str(listing)},
        )
        names = listing.read_text().split()
    ours = [name for name in names if name.partition(".")[0] in PRODUCT]
    return {"all": len(names), "ours": len(ours)}


def node_pss_kb(tree: Tree) -> int:
    """The proportional set size of a broker that is ready, in kB."""
    with scratch() as folder:
        helper = subprocess.Popen(
            [sys.executable, "-P", str(INSIDE), "node", str(tree.folder)],
            cwd=folder,
            env=tree.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert helper.stdin is not None
        assert helper.stdout is not None
        try:
            pid = int(helper.stdout.readline())
            time.sleep(SETTLED_S)
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        finally:
            helper.stdin.close()
            helper.wait(60)
    match = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    assert match is not None
    return int(match[1])


def speed(tree: Tree) -> dict[str, Any]:
    """CPU times and imported modules of the commands, and the memory of a broker."""
    found: dict[str, Any] = {}
    for command in COMMANDS:
        say(f"speed: {command}")
        cpu_s(tree, command)  # the first call writes byte code
        times = sorted(cpu_s(tree, command) for _ in range(ROUNDS))
        found[command] = {
            "cpu_s": {"least": times[0], "median": statistics.median(times)},
            "modules": imported(tree, command),
        }
    say("speed: memory of a broker")
    found["broker_pss_kb"] = node_pss_kb(tree)
    return found


def ratio(old: Sequence[float], new: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """The ratio new/old of the medians, with the 95 % bootstrap interval over pairs."""
    pairs = list(zip(old, new, strict=True))
    chance = random.Random(seed)

    def of(chosen: Sequence[tuple[float, float]]) -> float:
        return statistics.median(b for _, b in chosen) / statistics.median(a for a, _ in chosen)

    resampled = sorted(of(chance.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return of(pairs), resampled[RESAMPLES * 25 // 1000], resampled[RESAMPLES * 975 // 1000 - 1]


def compare_speed(old: Tree, new: Tree, pairs: int, memory_pairs: int) -> bool:
    """Interleaved pairs of calls; a table of ratios. Whether the upper end of each interval is within the limit."""
    rows = [
        _timed(f"CPU s, {command}", old, new, pairs, functools.partial(cpu_s, command=command))
        for command in COMMANDS
    ]
    rows.append(_timed("PSS kB, broker", old, new, memory_pairs, node_pss_kb))
    print("| measure | old | new | ratio | 95 % interval | at most 1.05 |")
    print("| --- | --- | --- | --- | --- | --- |")
    kept = True
    for name, before, after, middle, low, high in rows:
        kept &= high <= LIMIT
        verdict = "yes" if high <= LIMIT else "no" if low > LIMIT else "open"
        print(
            f"| {name} | {before} | {after} | {middle:.3f} | {low:.3f} to {high:.3f} | {verdict} |"
        )
    for command in COMMANDS:
        before_n, after_n = imported(old, command), imported(new, command)
        for kind in ("all", "ours"):
            part = after_n[kind] / before_n[kind]
            kept &= part <= LIMIT
            verdict = "yes" if part <= LIMIT else "no"
            label = f"modules imported ({kind}), {command}"
            print(f"| {label} | {before_n[kind]} | {after_n[kind]} | {part:.3f} | | {verdict} |")
    return kept


def _timed(
    name: str, old: Tree, new: Tree, pairs: int, measure: Callable[[Tree], float]
) -> tuple[str, str, str, float, float, float]:
    """Which of the two comes first alternates."""
    measure(old), measure(new)  # byte code and the file cache
    found: dict[str, list[float]] = {"old": [], "new": []}
    for index in range(pairs):
        say(f"{name}: pair {index + 1} of {pairs}")
        turns = [("old", old), ("new", new)]
        for key, tree in turns if index % 2 == 0 else reversed(turns):
            found[key].append(measure(tree))
    middle, low, high = ratio(found["old"], found["new"])
    shown = (_shown(statistics.median(found[key])) for key in ("old", "new"))
    return (name, next(shown), next(shown), middle, low, high)


def _shown(value: float) -> str:
    return f"{value:.3f}" if value < 100 else f"{value:,.0f}"
