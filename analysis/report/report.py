"""Writes report.html: one file, without scripts and without external resources."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from analysis.formatting import format_fact, natural
from analysis.inputs.manifest import deliveries, method, method_of_each
from analysis.inputs.results import table
from analysis.inputs.run_folder import Run, read_run
from analysis.report import pages
from analysis.report.sections import (
    clocks,
    delay,
    hazard,
    headline,
    journeys,
    link_utilization,
    load,
    machine,
    overlay,
    paths,
    topology_map,
    why,
)
from analysis.report.sections.actions import change_rows, fault_rows
from analysis.report.sections.delay import shares_chart, times_chart
from analysis.report.sections.headline import headline_sentence
from analysis.report.sections.overhead import layer_rows, layer_totals, layers_chart
from analysis.report.sections.receivers import method_rows, receiver_rows
from analysis.report.sections.topology_map import edges_of
from analysis.stats.trials import summary_of_run

TEMPLATE = "report.html"


def load_libraries() -> None:
    """Load all that a report needs, which takes longer than to write one of a short run."""
    import altair

    assert altair
    pages.template(TEMPLATE)


def write_report(run_dir: Path) -> Path:
    """Write the report of an analysed run; returns its path."""
    run = read_run(Path(run_dir).resolve())
    return pages.write(run.report, render(run))


def render(run: Run) -> str:
    """The report's HTML."""
    return pages.render(TEMPLATE, **_view(run))


# Chart name for readers -> its key in the view of the template.
CHARTS = {
    "delay-by-level-cdf": ("shares",),
    "delay-over-time": ("times",),
    "hazard-over-time": ("hazard", "chart"),
    "slowest-and-median-alert-timeline": ("journey", "chart"),
    "message-paths": ("paths", "drawing"),
    "link-utilization-heat-map": ("link_utilization", "chart"),
    "bytes-by-layer": ("layers",),
    "overlay-hops": ("overlay", "hops"),
    "overlay-copies-by-broker": ("overlay", "copies"),
    "overlay-control-by-broker": ("overlay", "control"),
    "load-by-node": ("load", "chart"),
    "machine-over-time": ("machine", "chart"),
    "clocks-over-time": ("clocks", "chart"),
    "topology": ("topology",),
}


def charts_of(run: Run) -> dict[str, str]:
    """The charts of this run's report by descriptive names."""
    found: dict[str, str] = {}
    view = _view(run)
    for name, keys in CHARTS.items():
        value: Any = view
        for key in keys:
            value = value[key] if value else None
        if value:
            found[name] = str(value)
    return found


def _view(run: Run) -> dict[str, Any]:
    summary = summary_of_run(run)
    deliveries = table(run, "deliveries")
    links = table(run, "links").sort_by([("direction", "descending")]).to_pylist()
    links.sort(key=lambda row: natural(row["link"]))
    sentence, mood = headline_sentence(summary)
    layers = layer_rows(run, table(run, "overhead"))
    start_ns = run.start_ns
    receivers, more_receivers = receiver_rows(summary)
    journey = journeys.view(run, deliveries)
    return {
        "summary": summary,
        "simulated": run.simulated,
        "sentence": sentence,
        "mood": mood,
        "answer": headline.sentences(summary),
        "answer_methods": headline.method_rows(
            deliveries, links, method_of_each(run.manifest["topology"])
        ),
        "levels": delay.level_rows(summary),
        "methods": method_rows(summary),
        "receivers": receivers,
        "more_receivers": more_receivers,
        "shares": shares_chart(deliveries, summary),
        "times": times_chart(deliveries, start_ns),
        "hazard": hazard.view(run),
        "journey": journey,
        "why": why.view(run, deliveries),
        "paths": paths.view(run, journey["path"] if journey else None),
        "link_utilization": link_utilization.view(run, summary),
        "layers": layers_chart(layers),
        "layer_totals": layer_totals(layers),
        "overlay": overlay.view(run, summary, start_ns),
        "load": load.view(run, summary),
        "machine": machine.view(run, summary, start_ns),
        "clocks": clocks.view(run, summary, start_ns),
        "topology": _drawing(run),
        "kinds": sorted({node.kind for node in run.nodes}),
        "lost": delay.lost_rows(deliveries),
        "links": links,
        "link_methods": _link_methods(run),
        "link_changes": change_rows(run.manifest, start_ns),
        "faults": fault_rows(run.manifest, start_ns),
        "start_ns": start_ns,
        "manifest": run.manifest,
        "made": _date(run.manifest["created_ns"]),
        "facts": _facts(run, summary),
        "commands": commands(run),
    }


def _link_methods(run: Run) -> dict[str, str]:
    """The delivery method of each link, if they differ."""
    nodes = run.manifest["topology"]["nodes"]
    known = {node["name"]: method(own) for node in nodes if (own := node.get("delivery"))}
    return known if len(set(known.values())) > 1 else {}


def _date(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _drawing(run: Run) -> Markup:
    hops = table(run, "hops", ["src", "dst"])
    names = {node.name for node in run.nodes}
    edges = edges_of(hops, names) or topology_map.star(run.nodes)
    return topology_map.draw(run.nodes, topology_map.through_routers(run.nodes, edges))


def _counted(number: int, kind: str) -> str:
    noun = "external node" if kind == "external" else kind
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _facts(run: Run, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Facts that a reader needs to judge and repeat the run."""
    manifest = run.manifest
    topology = manifest["topology"]
    counts = {
        kind: sum(node.kind == kind for node in run.nodes)
        for kind in ("broker", "sensor", "subscriber", "router", "external")
    }
    facts = [
        ("run", run.name),
        ("lab", str(manifest["lab"])),
        ("made", _date(manifest["created_ns"])),
        ("nodes", ", ".join(_counted(n, kind) for kind, n in counts.items() if n)),
        ("overlay", method(topology["overlay"])),
        ("delivery", deliveries(topology)),
        ("scenario", _scenario(topology)),
        ("backend", _with_reason(manifest["backend"])),
        ("link emulator", _with_reason(manifest["emulator"] or {"name": run.emulator})),
        ("version of testbed", str(manifest["version"])),
    ]
    if tcp := manifest.get("tcp"):  # runs of earlier versions do not say
        facts.append(("TCP", _with_reason(tcp)))
    if ignored := summary.get("ignored_publications", 0):
        were = "publication" if ignored == 1 else "publications"
        not_counted = "is not counted" if ignored == 1 else "are not counted"
        facts.append(
            ("measured", f"{ignored} {were} before the lab was last changed {not_counted}")
        )
    for title in ("details", "machine"):
        for name, value in sorted((manifest.get(title) or {}).items()):
            if value not in (None, "", [], {}):
                facts.append(format_fact(name, value))
    return facts


def _scenario(topology: dict[str, Any]) -> str:
    scenario = topology["scenario"]
    seconds, speed = scenario["duration_s"], scenario.get("speed", 1.0)
    paced = "" if speed == 1 else f" played {speed:g} times as fast, in {seconds / speed:g} s"
    return f"{seconds:g} s{paced}, seed {topology['seed']}"


def _with_reason(choice: dict[str, Any]) -> str:
    return f"{choice['name']} ({choice['reason']})" if choice.get("reason") else str(choice["name"])


def _reads_other_files(run: Run) -> bool:
    """Whether the topology names other files, which are not in the run folder."""
    externals = [node.get("external") or {} for node in run.manifest["topology"]["nodes"]]
    return any(external.get("files") for external in externals)


def commands(run: Run) -> list[tuple[str, str]]:
    """Commands that work anywhere on this machine: with paths instead of names."""
    folder = shlex.quote(str(run.folder))
    seen = "traces" if run.simulated else "captures"
    topology, again = str(run.folder / "topology.yaml"), "the same file and seed again"
    if run.manifest.get("source") and _reads_other_files(run):
        topology, again = run.manifest["source"], f"{again}; its text as it was: {topology}"
    return [
        (f"testbed run {shlex.quote(topology)} --backend {run.backend}", again),
        (f"testbed analyze {folder}", f"measure this run's {seen} again"),
        (f"testbed report {folder}", "write this page again"),
        (f"testbed report {folder} --figures", "its charts as SVG and PDF"),
    ]
