"""Renders HTML pages from templates and writes them atomically."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from analysis import formatting
from analysis.formatting import not_within, seconds, size


def percentile_with_error(row: Mapping[str, Any], name: str) -> str:
    """A percentile of a row, with the digits that its error allows; or that it was not reached."""
    return formatting.percentile(row, name, (row.get("error_s") or {}).get(name, 0.0))


def render(name: str, **view: Any) -> str:
    """Render the page; a missing value is an error."""
    return template(name).render(view)


@cache
def template(name: str) -> Template:
    """The template, compiled."""
    environment = Environment(
        loader=PackageLoader("analysis.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "seconds": seconds,
        "size": size,
        "delay": percentile_with_error,
        "not_within": not_within,
    }
    return environment.get_template(name)


def write(path: Path, text: str) -> Path:
    """Write atomically: a reader sees the old page or the new one."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.replace(path)
    return path
