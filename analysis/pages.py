"""HTML pages from templates, written whole or not at all."""

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from analysis import findings, receivers


def render(template: str, **view: Any) -> str:
    """The page; a value that the template wants and nobody gave is an error."""
    environment = Environment(
        loader=PackageLoader("analysis"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "seconds": findings.seconds,
        "size": findings.size,
        "delay": receivers.told,
    }
    return environment.get_template(template).render(view)


def write(path: Path, text: str) -> Path:
    """Whoever opens the page meanwhile sees the old one."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.replace(path)
    return path
