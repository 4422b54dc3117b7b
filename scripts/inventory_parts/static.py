"""Parts of the inventory that come from reading files: goldens, names, structure, import graph."""

import ast
import configparser
import itertools
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scripts.inventory_parts import digests
from scripts.inventory_parts.trees import Module, Tree, scratch

SMALL_LINES = 100
LONG_BYTES = 8  # shorter constants in tests are not worth a comparison
LONG_TEXT = 200  # longer ones are hashed
FEW_MODULES = 25


def goldens(tree: Tree) -> dict[str, Any]:
    """Hashes and texts of tests/golden by file, and how often each byte constant stands in the tests."""
    folder = tree.folder / "tests" / "golden"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    constants: Counter[str] = Counter()
    for path in sorted((tree.folder / "tests").rglob("*.py")):
        constants.update(_byte_constants(ast.parse(path.read_text())))
    return {
        "files": {str(path.relative_to(folder)): digests.digest_file(path) for path in files},
        "texts": {str(path.relative_to(folder)): path.read_text() for path in files},
        "bytes_in_tests": dict(sorted(constants.items())),
    }


def _byte_constants(tree: ast.AST) -> Iterable[str]:
    """Bytes, and texts of hex digits: hashes; bytes that are a text, such as a request, as they are."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant):
            continue
        if isinstance(node.value, bytes) and len(node.value) >= LONG_BYTES:
            yield _text(node.value) or digests.digest(node.value)
        elif isinstance(node.value, str) and len(raw := _from_hex(node.value)) >= LONG_BYTES:
            yield digests.digest(raw)


def _text(raw: bytes) -> str | None:
    text = raw.decode("ascii", "replace")
    return text if text.replace("\n", " ").isprintable() and len(raw) <= LONG_TEXT else None


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def tests(tree: Tree) -> dict[str, Any]:
    """The ids of all tests, as pytest collects them, and the hashes of the functions in them."""
    given = ["-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--color=no"]
    done = tree.run(given, tree.folder)
    ids = [line for line in done.out.splitlines() if "::" in line and not line.startswith(" ")]
    if done.code or not ids:
        raise RuntimeError(f"pytest could not collect:\n{done.out[-2000:]}{done.err[-2000:]}")
    files = sorted({line.partition("::")[0] for line in ids})
    return {
        "ids": sorted(line.replace(str(tree.folder), "<tree>") for line in ids),
        "functions": dict(_test_functions(tree, files)),
    }


def _test_functions(tree: Tree, files: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Each definition of these files in their order: its place, and its hashes with and without texts.

    A test class that a state machine makes has no syntax of its own: its place is its hash.
    """
    for file in files:
        syntax = ast.parse((tree.folder / file).read_text())
        for name, node in digests.definitions(syntax):
            place, *hashes = _row(f"{file}::{name.replace('.', '::')}", node)
            yield place, hashes
        for name in itertools.chain.from_iterable(map(_defined, digests.other_statements(syntax))):
            if name.startswith("Test"):
                place = f"{file}::{name}::runTest"
                yield place, [place, place]


def names(tree: Tree) -> dict[str, Any]:
    """The public names that each module defines at its top level."""
    return {module.name: public_names(module) for module in tree.modules()}


def public_names(module: Module) -> list[str]:
    found: set[str] = set()
    for statement in module.syntax.body:
        found.update(_defined(statement))
    return sorted(name for name in found if not name.startswith("_"))


def _functions_and_classes(module: Module) -> list[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = (each.name for each in module.syntax.body if isinstance(each, kinds))
    return [name for name in found if not name.startswith("_")]


def _defined(statement: ast.stmt) -> Iterable[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        yield statement.target.id
    elif isinstance(statement, (ast.If, ast.Try)):
        for each in [*statement.body, *statement.orelse]:
            yield from _defined(each)


def structure(tree: Tree) -> dict[str, Any]:
    """Of every definition: where it stands, and the hashes of its syntax without identifiers."""
    found = []
    for module in tree.product():
        for name, node in digests.definitions(module.syntax):
            found.append(_row(f"{module.name}:{name}", node))
        for index, statement in enumerate(digests.other_statements(module.syntax)):
            found.append(_row(f"{module.name}:(statement {index + 1})", statement))
    return {"definitions": found}


def _row(where: str, node: ast.AST) -> list[str]:
    return [where, digests.structure(node), digests.structure(node, with_texts=False)]


def imports(tree: Tree) -> dict[str, Any]:
    """The import graph, and the numbers that describe it."""
    with scratch() as folder:
        done = tree.inside("graph", *tree.packages, cwd=folder)
    if done.code:
        raise RuntimeError(done.err[-2000:])
    graph: dict[str, list[str]] = json.loads(done.out)
    return {"graph": dict(sorted(graph.items())), "numbers": _numbers(tree, graph)}


def _numbers(tree: Tree, graph: Mapping[str, list[str]]) -> dict[str, Any]:
    modules = [module for module in tree.modules() if not module.is_package]
    lines = {module.name: module.lines for module in modules}
    importers = Counter(each for found in graph.values() for each in found)
    single = sorted(name for name in lines if importers[name] == 1)
    one_name = sorted(each.name for each in modules if len(_functions_and_classes(each)) == 1)
    folders = Counter(name.rpartition(".")[0] for name in lines)
    packages = {module.name for module in tree.modules() if module.is_package}
    return {
        "modules": len(lines),
        "median_lines": statistics.median(lines.values()),
        "mean_lines": round(statistics.mean(lines.values()), 1),
        "longest": sorted(([count, name] for name, count in lines.items()), reverse=True)[:10],
        "single_importers": single,
        "small_single_importers": [name for name in single if lines[name] < SMALL_LINES],
        "one_public_name": one_name,
        "folders": dict(sorted(folders.items())),
        "full_folders": {name: n for name, n in folders.most_common() if n > FEW_MODULES},
        "module_cycles": cycles(graph),
        "package_cycles": sibling_cycles(graph, packages),
        "nested_pairs": _nested_pairs(graph, packages),
        "exemptions": exemptions(tree),
    }


def sibling_cycles(graph: Mapping[str, list[str]], packages: set[str]) -> list[list[str]]:
    """The members of one folder, at any depth, that reach each other, where at least one of them is a package.

    This is what import-linter's `acyclic_siblings` refuses: a package and its own subpackage are no siblings.
    """
    between: dict[str, set[str]] = defaultdict(set)
    for name, imported in graph.items():
        for each in imported:
            if each in graph and (found := _siblings(name, each)):
                between[found[0]].add(found[1])
                between.setdefault(found[1], set())
    found_cycles = cycles({name: sorted(each) for name, each in between.items()})
    return [each for each in found_cycles if packages & set(each)]


def _siblings(name: str, other: str) -> tuple[str, str] | None:
    """The members of the innermost common folder in which both lie; None if one is the other's folder."""
    left, right = name.split("."), other.split(".")
    for index, (each, its) in enumerate(zip(left, right, strict=False)):
        if each != its:
            return ".".join(left[: index + 1]), ".".join(right[: index + 1])
    return None


def _nested_pairs(graph: Mapping[str, list[str]], packages: set[str]) -> list[list[str]]:
    """A package and its own subpackage, where modules of each import modules of the other."""
    found = {
        (_folder(name, packages), _folder(each, packages))
        for name in graph
        for each in graph[name]
        if each in graph
    }
    return sorted(
        [name, each]
        for name, each in found
        if "." in name and each.startswith(f"{name}.") and (each, name) in found
    )


def _folder(name: str, packages: set[str]) -> str:
    return name if name in packages else name.rpartition(".")[0]


def cycles(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """The sets of nodes that reach each other (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()
    found: list[list[str]] = []
    for root in sorted(graph):
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        waiting.add(root)
        while work:
            name, rest = work[-1]
            for each in rest:
                if each not in graph:
                    continue
                if each not in index:
                    index[each] = low[each] = len(index)
                    stack.append(each)
                    waiting.add(each)
                    work.append((each, iter(graph[each])))
                    break
                if each in waiting:
                    low[name] = min(low[name], index[each])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    at = stack.index(name)
                    component = sorted(stack[at:])
                    del stack[at:]
                    waiting.difference_update(component)
                    if len(component) > 1:
                        found.append(component)
    return sorted(found)


def exemptions(tree: Tree) -> list[str]:
    """The imports that .importlinter's contracts ignore."""
    parser = configparser.ConfigParser()
    parser.read(tree.folder / ".importlinter")
    texts = (parser[each].get("ignore_imports", "") for each in parser.sections())
    return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


def numbers_table(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """The numbers of one or more trees as a Markdown table; a column each."""
    rows = [_numbers_rows(numbers) for numbers in columns.values()]
    lines = [f"| {name} | {' | '.join(str(row[name]) for row in rows)} |" for name in rows[0]]
    head = f"| measure | {' | '.join(columns)} |"
    return "\n".join([head, "| --- |" + " --- |" * len(columns), *lines])


def _numbers_rows(numbers: Mapping[str, Any]) -> dict[str, Any]:
    flat = ", ".join(f"`{name}` {count}" for name, count in numbers["full_folders"].items())
    biggest = max(numbers["folders"].items(), key=lambda pair: pair[1])
    return {
        "modules": numbers["modules"],
        "median / mean lines": f"{numbers['median_lines']:g} / {numbers['mean_lines']:.0f}",
        "longest module": f"`{numbers['longest'][0][1]}` {numbers['longest'][0][0]}",
        "modules with exactly one importer": len(numbers["single_importers"]),
        f"of these under {SMALL_LINES} lines": len(numbers["small_single_importers"]),
        "modules that define one public function or class": len(numbers["one_public_name"]),
        "most modules in a folder": f"`{biggest[0]}` {biggest[1]}",
        f"folders with more than {FEW_MODULES} modules": flat or "none",
        "cycles between modules": _listed(numbers["module_cycles"]),
        "cycles between members of one folder (packages)": _listed(numbers["package_cycles"]),
        "packages and own subpackages that import each other": len(numbers["nested_pairs"]),
        "exemptions in .importlinter": len(numbers["exemptions"]),
    }


def _listed(found: list[list[str]]) -> str:
    if not found:
        return "none"
    return f"{len(found)}: " + "; ".join(" ↔ ".join(f"`{name}`" for name in each) for each in found)
