"""Tasks that need the inspected tree's own code; each runs in a child with PYTHONPATH set to that tree.

It imports nothing of the inventory, and finds what it needs by the project's entry point or by kind, not by
module path: the modules move.
"""

import ast
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def _main(entry_point: str) -> Callable[[], None]:
    module, _, function = entry_point.partition(":")
    found: Callable[[], None] = getattr(importlib.import_module(module), function)
    return found


def command(entry_point: str, *arguments: str) -> None:
    """The console command; with INVENTORY_MODULES, the names of all imported modules go to that file."""
    sys.argv = ["testbed", *arguments]
    try:
        _main(entry_point)()
    finally:
        if listing := os.environ.get("INVENTORY_MODULES"):
            names = sorted(name for name, module in sys.modules.items() if module is not None)
            Path(listing).write_text("\n".join(names))


def command_without_spark(entry_point: str, *arguments: str) -> None:
    """The console command; it fails where it imports Spark, and all it did before stands."""
    sys.modules["pyspark"] = None  # type: ignore[assignment]  # the import system's word for "not there"
    command(entry_point, *arguments)


def options(entry_point: str) -> None:
    """Every command with its options and arguments."""
    import typer

    space = getattr(_main(entry_point), "__globals__", {})
    app = next(value for value in space.values() if isinstance(value, typer.Typer))
    found: dict[str, Any] = {}
    _walk(typer.main.get_command(app), "testbed", found)
    print(json.dumps(found, default=repr))


def _walk(described: Any, path: str, found: dict[str, Any]) -> None:
    found[path] = {
        "help": described.help or "",
        "epilog": getattr(described, "epilog", None) or "",
        "parameters": [_parameter(each) for each in described.params],
    }
    for name in sorted(getattr(described, "commands", {})):
        context = described.make_context(path, [name], resilient_parsing=True)
        _, each, _ = described.resolve_command(context, [name])  # imports it, if need be
        _walk(each, f"{path} {name}", found)


def _parameter(each: Any) -> dict[str, Any]:
    return {
        "name": [*each.opts, *each.secondary_opts] if each.opts else [each.name],
        "kind": type(each).__name__,
        "type": _type(each),
        "range": [getattr(each, "min", None), getattr(each, "max", None)],
        "metavar": each.metavar,
        "default": repr(each.default),
        "required": each.required,
        "multiple": getattr(each, "multiple", False),
        "nargs": each.nargs,
        "envvar": each.envvar,
        "help": getattr(each, "help", None) or "",
    }


def _type(each: Any) -> str:
    """The type's name, without the module that it stands in."""
    described = getattr(each, "type_descriptor", None)
    kind = described.annotation if described is not None else each.type
    return getattr(kind, "__name__", None) or str(kind)


def tables(folder: str, package: str) -> None:
    """Every schema that a module of the package declares: a public constant named *SCHEMA or *COLUMNS."""
    found: dict[str, Any] = {}
    for path in sorted(Path(folder, package).rglob("*.py")):
        public = [name for name in _constants(path) if not name.startswith("_")]
        names = [name for name in public if name.endswith(("SCHEMA", "COLUMNS"))]
        if names:
            dotted = ".".join(path.relative_to(folder).with_suffix("").parts)
            module = importlib.import_module(dotted.removesuffix(".__init__"))
            for name in names:
                if (columns := _columns(getattr(module, name))) is not None:
                    found[f"{module.__name__}:{name}"] = columns
    print(json.dumps(found))


def _constants(path: Path) -> list[str]:
    found: list[str] = []
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


def _columns(value: Any) -> list[list[str]] | None:
    """Names and types of a schema, whether it is Spark's text, Arrow's object or a mapping."""
    if isinstance(value, str):
        return [part.split(None, 1) for part in _divided(value)]
    if isinstance(value, dict):
        return [[str(name), str(kind)] for name, kind in value.items()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return [
            [str(each), ""]
            for each in (sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)
        ]
    if hasattr(value, "names") and hasattr(value, "field"):  # pyarrow.Schema
        return [[name, str(value.field(name).type)] for name in value.names]
    if hasattr(value, "fields"):  # StructType
        return [[each.name, each.dataType.simpleString()] for each in value.fields]
    return None


def _divided(text: str) -> list[str]:
    """The parts of a schema's text, divided at the commas that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [" ".join(part.split()) for part in parts if part.strip()]


def graph(*packages: str) -> None:
    """Which module imports which."""
    import grimp

    found = grimp.build_graph(*packages, cache_dir=None)
    imports = {
        name: sorted(found.find_modules_directly_imported_by(name)) for name in found.modules
    }
    print(json.dumps(imports))


def node(folder: str) -> None:
    """Start a broker the way the tests do, wait for the end of stdin, stop it. Prints its pid.

    The tests' own support starts it: its configuration keeps the tree's current words.
    """
    tests = Path(folder, "tests")
    sys.path[:0] = [str(tests), str(tests / "support")]
    path = next(
        path
        for path in sorted((tests / "support").rglob("*.py"))
        if '"-m", "nodes"' in path.read_text()
    )
    package = path.relative_to(tests).with_suffix("").parts
    is_packaged = (tests / "support" / "__init__.py").exists()
    module = importlib.import_module(".".join(package) if is_packaged else path.stem)
    kinds = [each for each in vars(module).values() if isinstance(each, type)]
    lab = next(each for each in kinds if hasattr(each, "node"))(Path.cwd())
    broker = lab.node("broker", "b1")
    try:
        for step in ("go", "ready"):
            if hasattr(broker, step):
                getattr(broker, step)()
        print(broker.process.pid, flush=True)
        sys.stdin.read()
    finally:
        broker.process.terminate()
        broker.process.wait(30)


TASKS: dict[str, Callable[..., None]] = {
    "command": command,
    "command-without-spark": command_without_spark,
    "options": options,
    "tables": tables,
    "graph": graph,
    "node": node,
}

if __name__ == "__main__":
    TASKS[sys.argv[1]](*sys.argv[2:])
