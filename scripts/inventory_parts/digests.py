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
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns: dict[str, dict[str, Any]] = {}
    numeric: list[str] = []
    rows = np.zeros(table.num_rows, np.uint64)
    for field in table.schema:
        values = _hashes(table.column(field.name))
        rows = rows * np.uint64(_FACTOR) + values
        value_digest = digest((values if in_order else np.sort(values)).tobytes())
        columns[field.name] = {"type": str(field.type), "values": value_digest}
        if pa.types.is_string(field.type) and (counted := _counted(table.column(field.name))):
            columns[field.name]["counted"] = counted
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            numeric.append(value_digest)
    return {
        "rows": table.num_rows,
        "columns": columns,
        "content": digest((rows if in_order else np.sort(rows)).tobytes()),
        "numbers": digest("\n".join(sorted(numeric))),
    }


def _counted(column: Any) -> dict[str, int] | None:
    """How often each text stands in a column of few different texts, such as kinds."""
    found = column.value_counts().to_pylist()
    if len(found) > MOST_TEXTS:
        return None
    return {str(each["values"]): each["counts"] for each in found}


MOST_TEXTS = 100
_FACTOR = 6364136223846793005  # odd: of a linear congruential generator
_NULL = 0x9E3779B97F4A7C15


def _hashes(column: Any) -> Any:
    """A number of 64 bits for each value. Integers stay integers where some are missing."""
    import numpy as np
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        values = column.fill_null(False).to_numpy()
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = column.fill_null(0).to_numpy()
    elif pa.types.is_string(kind):
        values = column.fill_null("").to_numpy()
    else:
        texts = [json.dumps(value, default=str, sort_keys=True) for value in column.to_pylist()]
        values = np.array(texts, object)
    found = pd.util.hash_array(values).astype(np.uint64)
    missing = column.is_null().to_numpy()
    return np.where(missing, np.uint64(_NULL), found)


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
