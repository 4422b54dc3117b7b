"""Write the pages of docs/reference that follow from the code: `make reference`, or `python -m scripts.reference`.

A page is made from what the code knows: commands from typer, keys from the JSON Schema, columns from the metrics'
modules, profiles from their table. `tests/unit/docs/test_reference.py` compares the pages with the files.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import typer

from analysis.metrics import (
    control,
    datagrams,
    delay,
    deliveries,
    events,
    forwards,
    hops,
    link_utilization,
    load,
    messages,
    mqtt,
    overhead,
    publications,
    repair,
)
from analysis.metrics.tables import TYPES, USUAL_COLUMNS
from testbed.cli.app import app
from testbed.cli.commands import COMMANDS, profiles
from testbed.topology import json_schema, units
from testbed.topology.profiles import BUILT_IN

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
WIDTH = 100
MADE = "<!-- Made by `make reference` from the code; edit it there. -->"

# Table -> the module that makes it, and the prefix of its ROW, SCHEMA and COLUMNS.
TABLES: Mapping[str, tuple[Any, str]] = {
    "messages": (messages, ""),
    "publications": (publications, ""),
    "hops": (hops, ""),
    "deliveries": (deliveries, ""),
    "delay": (delay, ""),
    "links": (overhead, "LINKS_"),
    "overhead": (overhead, ""),
    "link_utilization": (link_utilization, ""),
    "forwards": (forwards, ""),
    "control": (control, ""),
    "load": (load, ""),
    "repair": (repair, ""),
    "events": (events, ""),
    "mqtt": (mqtt, ""),
    "mqtt_deliveries": (mqtt, "DELIVERIES_"),
    "datagrams": (datagrams, ""),
}
# The keys of an event that say when it happens; each of the others is an action.
TIMES = ("at", "when", "every", "for", "until")
QUANTITIES = {
    getattr(units, name).pattern: name.lower()
    for name in dir(units)
    if isinstance(getattr(units, name), units.Quantity)
}


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    return {
        "commands.md": commands(),
        "topology-keys.md": topology_keys(),
        "actions.md": actions(),
        "tables.md": tables(),
        "profiles.md": link_profiles(),
    }


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *(part.strip("\n") for part in parts)]) + "\n"


def _wrapped(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(
        textwrap.fill(" ".join(part.split()), WIDTH, break_on_hyphens=False, break_long_words=False)
        for part in paragraphs
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


# Commands.


def commands() -> str:
    """All commands, with all arguments and options."""
    parts = [
        _wrapped(
            "`testbed COMMAND --help` shows the same. Every option is also an environment variable: "
            "`TESTBED_<COMMAND>_<OPTION>`. Where the table names another variable, that one holds."
        ),
        _table(
            ["command", "does"],
            [
                [f"[{name}](#testbed-{name})", " ".join(_plain(listed.help).split())]
                for name, listed in COMMANDS.items()
            ],
        ),
    ]
    for name in COMMANDS:
        parts.extend(_command(f"testbed {name}", _loaded(name)))
    return _page("Commands", *parts)


def _loaded(name: str) -> Any:
    group = typer.main.get_command(app)
    _, command, _ = cast(Any, group).resolve_command(None, [name])
    return command


def _command(name: str, command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    below = getattr(command, "commands", {})
    yield f"## {name}" if name.count(" ") == 1 else f"### {name}"
    yield _wrapped(_plain(command.help or ""))
    if not below:
        usage = " ".join([name, *(["[OPTIONS]"] if options else []), *map(_usage, arguments)])
        yield f"    {usage}"
    rows = [
        *([f"`{_value(p)}`", _needed(p), _meaning(p)] for p in arguments),
        *([_spelling(p), _default(p), _meaning(p)] for p in options if p.name != "help"),
    ]
    if rows:
        yield _table(["argument or option", "default", "meaning"], rows)
    if command.epilog:
        yield _epilog(_plain(command.epilog))
    for one, inner in below.items():
        yield from _command(f"{name} {one}", inner)


def _plain(text: str) -> str:
    return re.sub(r"\[/?(?:bold|italic|dim)?\]", "", text)


def _epilog(text: str) -> str:
    example = re.fullmatch(r"Examples?: (.*)", " ".join(text.split()))
    if not example:
        return _wrapped(text)
    lines = re.split(r" · |; (?=testbed )", example[1])
    return "\n".join([f"Example{'s' if lines[1:] else ''}:", "", *(f"    {one}" for one in lines)])


def _usage(parameter: Any) -> str:
    shown = _value(parameter) + ("..." if parameter.nargs == -1 else "")
    return shown if parameter.required else f"[{shown}]"


def _spelling(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    value = "" if parameter.is_flag else f" `{_value(parameter)}`"
    return names + value


def _value(parameter: Any) -> str:
    if parameter.metavar:
        return str(parameter.metavar)
    kind = parameter.type_descriptor.annotation
    if kind in (int, float):
        return "NUMBER"
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return "FILE" if kind is Path else "TEXT"


def _needed(parameter: Any) -> str:
    return "required" if parameter.required else _default(parameter)


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if value in (None, False, "") or callable(value) or value in ([], ()):
        return ""
    return "yes" if value is True else f"`{value}`"


def _meaning(parameter: Any) -> str:
    words = " ".join(_plain(parameter.help or "").split())
    return f"{words} Environment: `{parameter.envvar}`." if parameter.envvar else words


# Keys of the topology file.


class Schema:
    """The sections of the JSON Schema, each at the first place where the file may have it."""

    def __init__(self) -> None:
        self.top = json_schema()
        self.place: dict[str, str] = {}
        self._find("", self.top)

    def section(self, name: str) -> dict[str, Any]:
        part: dict[str, Any] = self.top["$defs"][name]
        return part

    def _find(self, place: str, part: Mapping[str, Any]) -> None:
        found = []
        for key, value in part.get("properties", {}).items():
            at = f"{place}.{key}" if place else key
            for name, path in _references(value, at):
                if name not in self.place:
                    self.place[name] = path
                    found.append((name, path))
        for name, path in found:
            self._find(path, self.section(name))


def _references(part: Any, place: str) -> Iterator[tuple[str, str]]:
    """The sections that a value may be, with their places."""
    if reference := part.get("$ref"):
        yield reference.rsplit("/", 1)[1], place
    for other in part.get("anyOf", ()):
        yield from _references(other, place)
    if isinstance(items := part.get("items"), dict):
        yield from _references(items, f"{place}[]")
    for inner in _named_values(part):
        yield from _references(inner, f"{place}.NAME")


def _named_values(part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for inner in (part.get("additionalProperties"), *part.get("patternProperties", {}).values()):
        if isinstance(inner, dict):
            yield inner


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Keys:
    """Tables of keys. Sections of other pages are linked there."""

    def __init__(self, schema: Schema, page: str) -> None:
        self.schema = schema
        self.page = page

    def table(self, section: Mapping[str, Any], chosen: Iterable[str] | None = None) -> str:
        required = section.get("required", ())
        keys = section.get("properties", {})
        rows = [
            [f"`{key}`", self.value(keys[key]), self._described(keys[key], key in required)]
            for key in (keys if chosen is None else chosen)
        ]
        return _table(["key", "value", "meaning"], rows)

    def _described(self, part: Mapping[str, Any], required: bool) -> str:
        words = _linked(part.get("description", ""))
        if required:
            return f"{words}. **Required**"
        default = part.get("default")
        if default in (None, "", [], {}) or "default" in words:
            return words
        shown = str(default).lower() if isinstance(default, bool) else default
        return f"{words}; default: {shown}"

    def value(self, part: Mapping[str, Any]) -> str:
        """What may stand there, in words."""
        match part:
            case {"$ref": reference}:
                words = self._link(reference.rsplit("/", 1)[1])
            case {"anyOf": choices}:
                others = [self.value(one) for one in choices if one.get("type") != "null"]
                words = " or ".join(dict.fromkeys(others))
            case {"enum": names}:
                words = ", ".join(f"`{one}`" for one in names)
            case {"pattern": pattern} if pattern in QUANTITIES:
                words = QUANTITIES[pattern]
            case {"type": "array", "items": items}:
                words = f"list of {self.value(items)}"
            case {"type": "object"}:
                words = "".join(f"name: {self.value(one)}" for one in _named_values(part))
            case {"type": "integer" | "number" as kind}:
                words = _number(kind, part)
            case {"type": list()}:
                words = "text, number, true or false"
            case {"type": "boolean"}:
                words = "true or false"
            case {"type": "string"}:
                words = "text"
            case _:
                words = "see its meaning"
        return words

    def _link(self, name: str) -> str:
        place = self.schema.place[name]
        page = "actions.md" if _is_of_events(place) else "topology-keys.md"
        return f"[{_title(place)}]({'' if page == self.page else page}#{_slug(_title(place))})"


def _number(kind: str, part: Mapping[str, Any]) -> str:
    words = "whole number" if kind == "integer" else "number"
    return (
        f"{words}, {part.get('minimum', 0):,} to {part['maximum']:,}"
        if "maximum" in part
        else words
    )


def _is_of_events(place: str) -> bool:
    return place.startswith("scenario.events[]")


def _title(place: str) -> str:
    return place.removeprefix("scenario.events[].")


def _linked(words: str) -> str:
    """Make a link of a documentation path in parentheses, and keep brackets from becoming one."""
    words = words.replace("[", r"\[")
    return re.sub(r"\(docs/([a-z]+)/([a-z-]+)\.md\)", r"([\2](../\1/\2.md))", words)


def _about(section: Mapping[str, Any]) -> str:
    return _wrapped(_linked(section.get("description", "")))


def topology_keys() -> str:
    """All sections of the topology file but the events of its scenario."""
    schema = Schema()
    keys = Keys(schema, "topology-keys.md")
    parts = [
        _wrapped(
            "Every key of a topology file. [The topology file](topology.md) explains the sections, with examples. "
            "[Actions](actions.md) has the events of a scenario. `NAME` is a name of your own; `[]` is an item of a "
            "list. Unknown keys are errors."
        ),
        _table(
            ["value", "written as"],
            [
                [kind, f"a number and one of {_units(pattern)}"]
                for pattern, kind in sorted(QUANTITIES.items(), key=lambda item: item[1])
            ],
        ),
        "## top level",
        keys.table(schema.top),
    ]
    for name, place in schema.place.items():
        if not _is_of_events(place):
            section = schema.section(name)
            parts += [f"## {place}", _about(section), keys.table(section)]
    return _page("Keys of the topology file", *parts)


def _units(pattern: str) -> str:
    names = re.findall(r"\(([^()]*)\)\$$", pattern)
    return ", ".join(f"`{name}`" for name in names[0].split("|")) if names else f"`{pattern}`"


def actions() -> str:
    """The events of a scenario: their times, and each action with its fields."""
    schema = Schema()
    keys = Keys(schema, "actions.md")
    event = schema.section("RawEvent")
    found = [key for key in event["properties"] if key not in TIMES]
    parts = [
        _wrapped(
            "An event of a scenario has its times and one of the actions below. [Scenarios](scenarios.md) explains "
            "them, with examples."
        ),
        "## scenario.events[]",
        keys.table(event, TIMES),
        _table(
            ["action", "what happens"],
            [
                [
                    f"[{key}](#{_slug(_action_place(schema, event, key))})"
                    if _sections(event, key)
                    else f"`{key}`",
                    _linked(event["properties"][key]["description"]),
                ]
                for key in found
            ],
        ),
    ]
    for name, place in schema.place.items():
        if place.startswith("scenario.events[]."):
            section = schema.section(name)
            same = [key for key in found if name in _sections(event, key)]
            shared = [f"Actions: {', '.join(f'`{key}`' for key in same)}."] if same[1:] else []
            parts += [
                f"## {_title(place)}",
                *shared,
                _about(section),
                keys.table(section),
            ]
    return _page("Events and actions", *parts)


def _sections(event: Mapping[str, Any], key: str) -> list[str]:
    return [name for name, _ in _references(event["properties"][key], key)]


def _action_place(schema: Schema, event: Mapping[str, Any], key: str) -> str:
    return _title(schema.place[_sections(event, key)[0]])


# Tables of metrics, and link profiles.


def columns(table: str) -> dict[str, str]:
    """Column -> description, in the order of the schema."""
    module, prefix = TABLES[table]
    described: dict[str, str] = {**USUAL_COLUMNS, **getattr(module, f"{prefix}COLUMNS")}
    return {name: described[name] for name in getattr(module, f"{prefix}SCHEMA").names}


def tables() -> str:
    """The tables of `metrics/`, with their columns."""
    kinds = {kind: name for name, kind in TYPES.items()}
    parts = [
        _wrapped(
            "`testbed analyze` writes these tables to `metrics/NAME.parquet` of the run folder; a large one is a "
            "folder of Parquet files. `testbed query` reads them by name. "
            "[Analysis](../explanation/analysis.md) explains how they are measured. "
            "Times in `_ns` are nanoseconds since 1970, in `_s` seconds."
        ),
        _table(
            ["table", "a row is"],
            [
                [f"[{name}](#{name})", getattr(module, f"{prefix}ROW")]
                for name, (module, prefix) in TABLES.items()
            ],
        ),
    ]
    for name, (module, prefix) in TABLES.items():
        schema = getattr(module, f"{prefix}SCHEMA")
        rows = [
            [f"`{column}`", kinds[schema.field(column).type], words]
            for column, words in columns(name).items()
        ]
        where = f"{module.__name__.replace('.', '/')}.py"
        about = f"A row is {getattr(module, f'{prefix}ROW')}. Module: `{where}`."
        parts += [f"## {name}", _wrapped(about), _table(["column", "type", "meaning"], rows)]
    return _page("Tables of metrics", *parts)


def link_profiles() -> str:
    """The built-in link profiles with their sources."""
    rows = [[f"`{name}`", *profiles.cells(row)[1:], row.source] for name, row in BUILT_IN.items()]
    return _page(
        "Link profiles",
        _wrapped(
            "A node's `link` names one of these, or one of the file's own ([links](topology.md#links)). "
            "`testbed profiles` prints the same; `testbed profiles --json` has every number. "
            "Rates count Ethernet frames. The source says what is an estimate."
        ),
        _table([*profiles.COLUMNS, "source"], rows),
    )


if __name__ == "__main__":
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
        print(f"docs/reference/{name}")
