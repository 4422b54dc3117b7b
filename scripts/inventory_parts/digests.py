"""Hashes of texts, of tables and of syntax trees whose identifiers are erased."""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LENGTH = 16  # hex digits


def digest(data: bytes | str) -> str:
    raw = data.encode() if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()[:LENGTH]


def digest_file(path: Path) -> str:
    return digest(path.read_bytes())


def digest_table(path: Path, in_order: bool) -> dict[str, Any]:
    """A Parquet file or folder: types and a hash of each column's values, and of the rows without names.

    `in_order` is False where the order of the rows is Spark's, which may differ from run to run.
    `numbers` leaves out names and texts: it stays the same when words change.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns: dict[str, dict[str, str]] = {}
    numeric: list[str] = []
    for field in table.schema:
        values = [_text(value) for value in table.column(field.name).to_pylist()]
        value_digest = digest("\n".join(values if in_order else sorted(values)))
        columns[field.name] = {"type": str(field.type), "values": value_digest}
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            numeric.append(value_digest)
    rows = ["\t".join(map(_text, row.values())) for row in table.to_pylist()]
    return {
        "rows": table.num_rows,
        "columns": columns,
        "content": digest("\n".join(rows if in_order else sorted(rows))),
        "numbers": digest("\n".join(sorted(numeric))),
    }


def _text(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True)


def numbers_of_lines(text: str) -> str:
    """A hash of the numbers in each line of JSON, without keys and texts."""
    lines = (sorted(_numbers(json.loads(line))) for line in text.splitlines() if line.strip())
    return digest("\n".join(map(str, lines)))


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    """All functions, methods and classes but those inside functions, with their dotted names."""
    yield from _definitions(tree.body, "")


def _definitions(body: Iterable[ast.stmt], prefix: str) -> Iterator[tuple[str, Definition]]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield f"{prefix}{statement.name}", statement
            if isinstance(statement, ast.ClassDef):
                yield from _definitions(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, (ast.If, ast.Try)):
            inner = [*statement.body, *statement.orelse]
            yield from _definitions(inner, prefix)


def other_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """A module's statements but for definitions, imports and its docstring."""
    apart = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    for statement in tree.body:
        if not isinstance(statement, apart) and not _is_docstring(statement):
            yield statement


def structure(node: ast.AST, with_texts: bool = True) -> str:
    """A hash of the syntax with all identifiers erased; docstrings and imports are left out.

    `a`, `a.b` and `a.b.c` count as the same: a name that was reached by its module may now stand beside.
    `with_texts` False erases string constants, too. Of a class, methods count by themselves and not here.
    """
    return digest(_shape(node, with_texts, outer=True))


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


_IDENTIFIERS = frozenset(
    {"id", "attr", "arg", "name", "asname", "module", "names", "rest", "kwd_attrs"}
)
_IMPORTS = (ast.Import, ast.ImportFrom)
_ANNOTATIONS = frozenset({"annotation", "returns"})


def _shape(  # noqa: PLR0911 - one answer for each kind of value
    value: Any, with_texts: bool, outer: bool = False, annotation: bool = False
) -> str:
    if isinstance(value, list):
        kept = [
            each for each in value if not isinstance(each, _IMPORTS) and not _is_docstring(each)
        ]
        return f"[{','.join(_shape(each, with_texts, annotation=annotation) for each in kept)}]"
    if isinstance(value, ast.Constant):
        if isinstance(value.value, str) and (annotation or not with_texts):
            return "NAME" if annotation else "TEXT"
        return f"C{value.value!r}"
    if _is_reference(value):
        return "NAME"
    if not isinstance(value, ast.AST):
        return repr(value)
    if isinstance(value, Definition) and not outer and isinstance(value, ast.ClassDef):
        return "CLASS"
    parts = []
    for name, each in ast.iter_fields(value):
        if name in _IDENTIFIERS and not isinstance(each, ast.AST):
            continue
        if name in {"type_comment", "kind", "ctx"}:
            continue
        inner = each
        if outer and isinstance(value, ast.ClassDef) and name == "body":
            inner = [one for one in each if not isinstance(one, Definition)]
        told = annotation or name in _ANNOTATIONS
        parts.append(f"{name}={_shape(inner, with_texts, annotation=told)}")
    return f"{type(value).__name__}({','.join(parts)})"


def _is_reference(value: Any) -> bool:
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name)
