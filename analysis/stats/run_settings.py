"""What distinguishes runs that are compared: their methods, seeds, overrides, links and nodes as text. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.inputs.manifest import deliveries, method
from analysis.inputs.run_folder import Run

NOT_SET = "as in the file"  # of an override that other runs have
SHOWN_ELSEWHERE = ("delivery", "overlay", "emulator", "seed", "name", "scenario.speed")
PROFILES = "links.profiles"


def distinguish(
    sides: Sequence[Sequence[Run]],
) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Of each side the settings that differ between sides, and the settings that are the same in all.

    Trials of one side usually differ in their seeds: all of them are named.
    """
    known = [[settings_of(run) for run in runs] for runs in sides]
    names = list(dict.fromkeys(name for runs in known for one in runs for name in one))
    values = {name: [_together(name, runs) for runs in known] for name in names}
    differing = [name for name in names if len(set(values[name])) > 1]
    differing = [name for name in differing if not _follows_from_another(name, differing)]
    return (
        [{name: values[name][place] for name in differing} for place in range(len(sides))],
        {
            name: found[0]
            for name, found in values.items()
            if len(set(found)) == 1 and not name.startswith(f"{PROFILES}.")
        },
    )


def settings_of(run: Run) -> dict[str, str]:
    """The settings of one run, the most telling first."""
    topology = run.manifest["topology"]
    scenario = topology.get("scenario", {})
    overrides = {
        path: str(value)
        for path, value in topology.get("overrides", ())
        if not any(path == one or path.startswith(f"{one}.") for one in SHOWN_ELSEWHERE)
    }
    return {
        "delivery": deliveries(topology),
        "overlay": method(topology["overlay"]),
        **overrides,
        "backend": run.backend,
        **({} if run.simulated else {"emulator": run.emulator}),
        "seed": str(topology["seed"]),
        "speed": f"{scenario.get('speed', 1.0):g}",
        "nodes": _counted(node["kind"] for node in topology["nodes"]),
        "links": _counted(node["profile"] for node in topology["nodes"]),
        **{
            f"{PROFILES}.{profile['name']}": _profile(profile)
            for profile in topology["profiles"]
            if any(node["profile"] == profile["name"] for node in topology["nodes"])
        },
    }


def _together(name: str, runs: Sequence[Mapping[str, str]]) -> str:
    return " | ".join(dict.fromkeys(one.get(name, NOT_SET) for one in runs))


def _follows_from_another(name: str, differing: Sequence[str]) -> bool:
    """A simulated run has no emulator; a profile differs because of an override, or because nobody uses it."""
    if name == "emulator":
        return "backend" in differing
    if name.startswith(f"{PROFILES}."):
        return "links" in differing or any(other.startswith(f"{name}.") for other in differing)
    return False


def _counted(names: Any) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(Counter(names).items()))


def _profile(profile: Mapping[str, Any]) -> str:
    return ", ".join(f"{each} {_shape(profile[each])}" for each in ("up", "down"))


def _shape(shape: Mapping[str, Any]) -> str:
    rate = shape["rate_bps"]
    parts = [
        "no limit" if rate is None else f"{rate / 1000:g}kbit/s",
        *([f"{shape['delay_s'] * 1000:g}ms"] if shape["delay_s"] else []),
        *([f"±{shape['jitter_s'] * 1000:g}ms"] if shape["jitter_s"] else []),
        *([f"{shape['loss'] * 100:g}% lost"] if shape["loss"] else []),
        *([f"queue {shape['queue_bytes']:,}B"] if shape.get("queue_bytes") is not None else []),
    ]
    return " ".join(parts)
