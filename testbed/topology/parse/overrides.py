"""`--set PATH=VALUE`: values that replace those of a topology file before the file is checked.

So a wrong path or value gets the same message as in the file, with `--set PATH` as its place.
A path names keys as in the file (`links.profiles.mvno.up.rate`) and items of lists by number
(`scenario.events[2].at`).
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import InputError
from testbed.topology import units
from testbed.topology.diagnostics.hints import did_you_mean, quoted
from testbed.topology.diagnostics.problems import Problem, ProblemList, TopologyErrors
from testbed.topology.diagnostics.source_map import Path, Place, SourceMap
from testbed.topology.model import Profile, Shape
from testbed.topology.parse.yaml_reader import Document, read
from testbed.topology.profiles import PROFILES
from testbed.topology.schema.checks import described

EXAMPLE = "write it like --set delivery.method=fifo"
LINK_PROFILES: Path = ("links", "profiles")
PROFILE_DEPTH = len(LINK_PROFILES) + 1  # of a profile's own path
# Sections whose keys are names of the user: an unknown name is a likely mistake.
_NAMED: Mapping[Path, str] = {
    ("groups",): "group",
    ("nodes",): "node",
    LINK_PROFILES: "link profile",
}
_STEP = re.compile(r"([^.\[\]]+)((?:\[[0-9]{1,6}\])*)\Z")


@dataclass(frozen=True, slots=True)
class Override:
    """One override: its path, and the text of its value, which is parsed as YAML."""

    path: str
    value: str

    @property
    def place(self) -> str:
        """The place that problems with this override name."""
        return f"--set {self.path}"


def parse_override(text: str) -> Override:
    """PATH=VALUE; InputError if it is not of that form."""
    path, sign, value = text.partition("=")
    path, value = path.strip(), value.strip()
    if not sign or not path:
        raise InputError(f"--set: {quoted(text)} is not of the form PATH=VALUE", EXAMPLE)
    if not all(_STEP.match(step) for step in path.split(".")):
        raise InputError(
            f"--set: {quoted(path)} is not a path",
            "join keys by dots and number items of lists from 0, as in scenario.events[0].at",
        )
    return Override(path, value)


def parse_overrides(texts: Sequence[str]) -> tuple[Override, ...]:
    """Parse all overrides; InputError if a path occurs twice."""
    overrides = tuple(parse_override(text) for text in texts)
    paths = [override.path for override in overrides]
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise InputError(
            f"--set: {twice} is set twice", "leave one out; `testbed sweep` takes lists of values"
        )
    return overrides


def overridden(
    document: Document, problems: ProblemList, overrides: Sequence[Override]
) -> tuple[Document, ProblemList]:
    """Apply the overrides; a problem with one of them names its `--set` as the place."""
    if not overrides or not isinstance(document.data, dict):
        return document, problems
    setting = _Setting(copy.deepcopy(document.data), document.source)
    for override in overrides:
        try:
            setting.take(override)
        except _NoSuchPath as wrong:
            problem = Problem(override.place, None, None, wrong.message, wrong.hint)
            problems.found.append(problem)
    source = setting.source()
    together = ProblemList(source)
    together.found += problems.found
    return Document(setting.data, source), together


class _NoSuchPath(Exception):
    """The path leads nowhere in this file."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class _Setting:
    """The data of a file while overrides are applied, and the place of each value."""

    def __init__(self, data: dict[str, Any], source: SourceMap) -> None:
        self.data = data
        self._before = source
        self._keys, self._values = dict(source.keys), dict(source.values)
        self._others = dict(source.others)
        self._built_in: set[Path] = set()  # built-in profiles that an override copied into the data

    def source(self) -> SourceMap:
        """The places of all values; an overridden value has its `--set` as its place."""
        before = self._before
        return SourceMap(before.file, before.lines, self._keys, self._values, self._others)

    def take(self, override: Override) -> None:
        """Set one value; _NoSuchPath, or TopologyErrors if the value is not YAML."""
        value, found = read(override.value, override.place)
        if found.found:
            raise TopologyErrors(found.found)
        here = Place(0, 0, file=override.place)
        self._others[override.place] = (override.value,)
        container: Any = self.data
        path: Path = ()
        steps = [*_steps(override.path)]
        while steps:
            step, steps = self._next(container, path, steps)
            path = (*path, step)
            if not steps:
                self._put(container, path, value.data, here)
            else:
                container = self._inside(container, path, steps, here)

    def _next(
        self, container: Any, path: Path, steps: list[str | int]
    ) -> tuple[str | int, list[str | int]]:
        """The first step, and those after it. Names may contain dots: hspa-7.2m is one step."""
        if isinstance(steps[0], int):
            return steps[0], steps[1:]
        known = {*container} if isinstance(container, dict) else set()
        if path == LINK_PROFILES:
            known |= {*PROFILES}
        for size in range(len(steps), 0, -1):
            name = ".".join(str(step) for step in steps[:size])
            if name in known:
                return name, steps[size:]
        return steps[0], steps[1:]

    def _inside(self, container: Any, path: Path, steps: list[str | int], here: Place) -> Any:
        """The container at this path; it is created if the file does not have it."""
        step = path[-1]
        self._check_item(container, path)
        inner = container[step] if isinstance(step, int) else container.get(step)
        if inner is None:
            inner = self._made(container, path, steps, here)
        wanted: type = list if isinstance(steps[0], int) else dict
        if not isinstance(inner, wanted):
            kind = "a list" if wanted is list else "a mapping"
            raise _NoSuchPath(
                f"`{_written(path)}` is {described(inner)} in the file, not {kind}",
                "name items of lists by number, as in events[0], and keys of mappings by dots",
            )
        return inner

    def _made(self, container: Any, path: Path, steps: list[str | int], here: Place) -> Any:
        """Create a section that the file leaves out; a built-in profile is copied."""
        _refuse_unknown_name(container, path)
        if path[:-1] == LINK_PROFILES and path[-1] in PROFILES:
            container[path[-1]] = _built_in(PROFILES[str(path[-1])])
            self._built_in.add(path)
        elif isinstance(steps[0], int):
            raise _NoSuchPath(
                f"the file has no list `{_written(path)}`", "set it as a whole: [...]"
            )
        else:
            container[path[-1]] = {}
        self._keys[path] = self._values[path] = here
        return container[path[-1]]

    def _check_item(self, container: Any, path: Path) -> None:
        step = path[-1]
        if isinstance(step, int) and step >= len(container):
            listed = f"`{_written(path[:-1])}` has {len(container)} items"
            upto = f"they are numbered from [0] to [{len(container) - 1}]" if container else ""
            raise _NoSuchPath(f"there is no item [{step}]: {listed}", upto)

    def _put(self, container: Any, path: Path, value: Any, here: Place) -> None:
        self._check_item(container, path)
        _refuse_unknown_name(container, path)
        container[path[-1]] = value
        for places in (self._keys, self._values):
            for below in [known for known in places if known[: len(path)] == path]:
                del places[below]
        self._values[path] = here
        if isinstance(path[-1], str):
            self._keys[path] = here
        self._built_in.discard(path)
        self._make_way_for_both(path, value)

    def _make_way_for_both(self, path: Path, value: Any) -> None:
        """A value for both directions of a built-in profile replaces its values for one, unless they were set, too."""
        profile, rest = path[:PROFILE_DEPTH], path[PROFILE_DEPTH:]
        if profile not in self._built_in or rest[:1] != ("both",):
            return
        written = self.data["links"]["profiles"][profile[-1]]
        for key in rest[1:2] or (value if isinstance(value, dict) else ()):
            for way in ("up", "down"):
                places = ((*profile, way), (*profile, way, key))
                if not any(place in self._values for place in places):
                    written[way].pop(key, None)


def _refuse_unknown_name(container: Any, path: Path) -> None:
    """Refuse a group, node or link profile that the file does not name: it is a likely mistake."""
    if kind := _NAMED.get(path[:-1]):
        name = str(path[-1])
        known = {*container, *(PROFILES if path[:-1] == LINK_PROFILES else ())}
        if name not in known:
            hint = did_you_mean(name, sorted(known)) or f"the file has no {kind} of a name"
            raise _NoSuchPath(f"there is no {kind} {quoted(name)}", hint)


def _steps(path: str) -> Iterator[str | int]:
    for part in path.split("."):
        match = _STEP.match(part)
        assert match is not None  # parse_override has checked it
        yield match[1]
        yield from (int(number) for number in re.findall(r"[0-9]+", match[2]))


def _written(path: Path) -> str:
    """The path in the form of `--set`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]


def _built_in(profile: Profile) -> dict[str, Any]:
    """A built-in profile in the form of a file."""
    return {"up": _as_written(profile.up), "down": _as_written(profile.down), "mtu": profile.mtu}


def _as_written(shape: Shape) -> dict[str, str]:
    values: dict[str, str] = {}
    if shape.rate_bps is not None:
        values["rate"] = units.RATE.write(shape.rate_bps)
    for key, seconds in (("delay", shape.delay_s), ("jitter", shape.jitter_s)):
        values[key] = units.DURATION.write(seconds)
    values["loss"] = units.SHARE.write(shape.loss)
    for key, size in (("queue", shape.queue_bytes), ("burst", shape.burst_bytes)):
        if size is not None:
            values[key] = units.SIZE.write(size)
    return values
