"""Parts of the inventory that come from running the `testbed` command: options, JSON keys, schemas, traces."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from scripts.inventory_parts import digests
from scripts.inventory_parts.trees import Finished, Tree, say, scratch

SMALL = "topologies/minimal.yaml"
DEMO = "topologies/demo.yaml"
SAMPLE = "captures/sample"
BROKEN = "name: 1\nnodes: {a: {kind: nothing}}\n"
QUICK_CPU_S = 15
# The commands that need no lab. {run}: the sample run's folder; {again}: a simulated one's; {tree}, {here}: folders.
FAST_COMMANDS = {
    "validate": "validate {tree}/topologies/demo.yaml --json",
    "validate, broken": "validate broken.yaml --json",
    "wrong usage": "validate --no-such-option --json",
    "plan": "plan {tree}/topologies/demo.yaml --json",
    "up --dry-run": "up {tree}/topologies/demo.yaml --dry-run --json",
    "profiles": "profiles --json",
    "doctor": "doctor --json",
    "status": "status --json",
    "status, unknown lab": "status nowhere --json",
    "graph": "graph {tree}/topologies/demo.yaml --json",
    "sweep --dry-run": "sweep {tree}/topologies/minimal.yaml --set delivery.method=fifo,preemptive --dry-run --json",
    "logs": "logs {run} --json",
    "events": "events {run} --json",
    "job": "job --to {here}/job --json",
}
SPARK_COMMANDS = {
    "simulate": "simulate {tree}/topologies/minimal.yaml --json",
    "analyze": "analyze {run} --json",
    "report": "report {run} --json",
    "compare": "compare {run} {again} --json",
    "query": ["query", "SELECT * FROM delay", "{run}", "--json"],
    "packets": "packets {run}/pcap --to {here}/packets.parquet --json",
    "watch": "watch {run} --json",
    "replay": "replay {again} --backend simulated --json",
}


def options(tree: Tree) -> dict[str, Any]:
    """Every command with its options; help texts as hashes."""
    with scratch() as folder:
        done = tree.inside("options", tree.entry_point, cwd=folder)
    found: dict[str, Any] = _document(done)
    for command in found.values():
        for described in (command, *command["parameters"]):
            described["help"] = digests.digest(described["help"])
        command["epilog"] = digests.digest(command["epilog"])
    return found


def schema(tree: Tree) -> dict[str, Any]:
    """The JSON Schemas that `testbed schema` prints, and whether those that are kept as files are the same."""
    with scratch() as folder:
        printed = {
            "topology": _document(tree.command("schema", cwd=folder)),
            "scenario": _document(tree.command("schema", "--scenario", cwd=folder)),
        }
    kept = {
        path.name: "as printed"
        if json.loads(path.read_text()) in printed.values()
        else digests.digest_file(path)
        for path in sorted(tree.folder.glob("topologies/*.json"))
    }
    return {**printed, "files": kept}


def json_keys(tree: Tree, quick: bool) -> dict[str, Any]:
    """The key paths of each command's JSON document, and the exit code."""
    with scratch() as folder:
        run = _sample(tree, folder)
        (folder / "broken.yaml").write_text(BROKEN)
        found: dict[str, Any] = {}
        told = {"tree": str(tree.folder), "here": str(folder), "run": str(run), "again": ""}
        chosen = FAST_COMMANDS if quick else {**FAST_COMMANDS, **SPARK_COMMANDS}
        for name, line in chosen.items():
            say(f"json: {name}")
            parts = line.split() if isinstance(line, str) else line
            arguments = [part.format(**told) for part in parts]
            done = tree.command(*arguments, cwd=folder)
            found[name] = {"exit": done.code, "keys": _keys(done, told)}
            if name == "simulate":
                told["again"] = str(_newest(folder / "captures", run))
        return found


def _sample(tree: Tree, folder: Path) -> Path:
    """A copy of the sample run, without what an analysis left in it."""
    copy = folder / "captures" / "sample"
    left = shutil.ignore_patterns("metrics*", "summary.json", "report.html")
    shutil.copytree(tree.folder / SAMPLE, copy, ignore=left)
    return copy


def _newest(captures: Path, but: Path) -> Path:
    return max((path for path in captures.iterdir() if path != but), key=lambda path: path.name)


def _keys(done: Finished, told: dict[str, str]) -> list[str]:
    """All key paths; what a run's id or a folder names is replaced."""
    text = done.out
    for name, value in told.items():
        if value:
            text = text.replace(value, f"<{name}>").replace(Path(value).name, f"<{name}>")
    return sorted({path for document in _documents(text) for path in _paths(document, "")})


def _documents(text: str) -> Iterator[Any]:
    """One document, or one a line."""
    try:
        yield json.loads(text)
    except ValueError:
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                yield {"(no JSON)": None}


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield f"{path}.{key}"
            yield from _paths(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each, f"{path}[]")


def _document(done: Finished) -> Any:
    try:
        return json.loads(done.out)
    except ValueError as error:
        raise RuntimeError(f"no JSON, exit code {done.code}: {done.err[-2000:]}") from error


def tables(tree: Tree, quick: bool) -> dict[str, Any]:
    """The schemas that the analysis declares, and the tables it makes of the sample run and a simulated one."""
    with scratch() as folder:
        declared = _document(tree.inside("tables", str(tree.folder), "analysis", cwd=folder))
        found: dict[str, Any] = {"declared": declared}
        if quick:
            return found
        run = _sample(tree, folder)
        say("tables: analysing the sample run")
        tree.command("analyze", str(run), "--json", cwd=folder)
        found["sample"] = _metrics(run)
        say("tables: simulating and analysing the demo")
        tree.command("simulate", str(tree.folder / DEMO), "--json", cwd=folder)
        found["simulated"] = _metrics(_newest(folder / "captures", run))
        return found


def _metrics(run: Path) -> dict[str, Any]:
    found = {path.stem: path for path in run.rglob("*.parquet") if path.parent.name != "trace"}
    tables = {name: path for name, path in sorted(found.items()) if not name.startswith("part-")}
    if not tables:
        raise RuntimeError(f"the analysis wrote no table of {run.name}")
    return {name: digests.digest_table(path, in_order=False) for name, path in tables.items()}


def traces(
    tree: Tree, quick: bool, match: str, jobs: int, keep: Callable[[Any], None]
) -> dict[str, Any]:
    """Hashes of what the simulator wrote for every sample topology, and for variations of a small one.

    `match` is a pattern of names such as `demo*`. `keep` gets what is there so far after each of them.
    """
    limit_s = QUICK_CPU_S if quick else None
    every = {name: given for name, given in _simulations(tree) if fnmatch(name, match)}
    found: dict[str, Any] = {}
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(_simulated, tree, given, limit_s): each for each, given in every.items()
        }
        for done in as_completed(waiting):
            found[waiting[done]] = done.result()
            say(f"traces: {waiting[done]} ({len(found)} of {len(every)})")
            keep(_in_order(found, every))
    return _in_order(found, every)


def _in_order(found: dict[str, Any], every: Iterable[str]) -> dict[str, Any]:
    return {name: found[name] for name in every if name in found}


def _simulations(tree: Tree) -> Iterator[tuple[str, list[str]]]:
    """Each topology; the demo with each scenario file, delivery method and overlay method."""
    folder = tree.folder / "topologies"
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("papers/*.yaml")]):
        yield str(path.relative_to(folder)), [str(path)]
    demo = str(tree.folder / DEMO)
    for path in sorted(folder.glob("scenarios/*.yaml")):
        yield f"demo, {path.name}", [demo, "--scenario", str(path)]
    with scratch() as here:
        described = _document(tree.command("schema", cwd=here))
    for setting in ("delivery", "overlay"):
        for method in _methods(described, setting):
            yield f"demo, {setting} {method}", [demo, "--set", f"{setting}.method={method}"]
    many = str(folder / "valley-alerts.yaml")
    for method in _methods(described, "overlay"):
        yield f"valley-alerts, overlay {method}", [many, "--set", f"overlay.method={method}"]


def _methods(described: dict[str, Any], setting: str) -> list[str]:
    """The values of `delivery.method` or `overlay.method`, as the schema lists them."""
    found = described["properties"][setting]
    for each in [found, *found.get("anyOf", ()), *found.get("allOf", ())]:
        if "$ref" in each:
            kind = described["$defs"][each["$ref"].rpartition("/")[2]]
            return list(kind["properties"]["method"]["enum"])
    return []


def _simulated(tree: Tree, arguments: list[str], cpu_limit_s: int | None) -> dict[str, Any]:
    with scratch() as folder:
        done = tree.command(
            "simulate", *arguments, cwd=folder, spark=False, cpu_limit_s=cpu_limit_s
        )
        if done.timed_out:
            return {"left_out": f"took more than {cpu_limit_s} s of CPU time"}
        runs = [path.parent for path in (folder / "captures").glob("*/trace")]
        if not runs:
            return {"refused": digests.digest(done.err.replace(str(tree.folder), "<tree>"))}
        return _written(runs[0], {str(tree.folder): "<tree>", str(folder): "<here>"})


def _written(run: Path, replaced: dict[str, str]) -> dict[str, Any]:
    """`packets` is what the links carried and when: no name of a column or of a record's key is in it."""
    in_order = {path.stem: path for path in sorted((run / "trace").glob("*.parquet"))}
    trace = {name: digests.digest_table(path, in_order=True) for name, path in in_order.items()}
    logs = sorted((run / "logs").glob("*"))
    others = sorted(path for path in run.glob("*.jsonl"))
    return {
        "packets": digests.digest("\n".join(sorted(each["numbers"] for each in trace.values()))),
        "trace": trace,
        "logs": _lines(logs, run.name, replaced),
        "other_lines": {path.name: _lines([path], run.name, replaced) for path in others},
    }


def _lines(paths: Iterable[Path], run: str, replaced: dict[str, str]) -> dict[str, Any]:
    texts = []
    for path in paths:
        text = path.read_text().replace(run, "<run>")
        for old, new in replaced.items():
            text = text.replace(old, new)
        texts.append(f"{path.name}\n{text}")
    return {
        "files": len(texts),
        "text": digests.digest("".join(texts)),
        "numbers": digests.digest(
            "\n".join(digests.numbers_of_lines(text.partition("\n")[2]) for text in texts)
        ),
    }
