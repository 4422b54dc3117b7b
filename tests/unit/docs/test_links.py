"""Every link of the documentation leads to a file that exists, and to a heading that it has."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted(DOCS.rglob("*.ipynb")),
    ROOT / "captures" / "README.md",
    ROOT / "playbooks" / "README.md",
]
KINDS = ("tutorial", "howto", "reference", "explanation", "papers", "dev")
LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.-])docs/[\w/.-]+\.(?:md|ipynb|svg|png)")
SOURCES = ("*.py", "*.yaml", "*.yml", "*.html", "*.json", "*.txt", "*.md", "*.toml")
FOLDERS = ("analysis", "benchmarks", "captures", "nodes", "playbooks", "testbed", "tests")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.MULTILINE | re.DOTALL)


def text_of(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return FENCE.sub("", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, which Git forges and the site make alike.

    They number headings of the same words differently; a link to one of those is an error.
    """
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text_of(page), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(slug)
    return frozenset(slug for slug in found if found.count(slug) == 1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_relative_to(ROOT), target
        assert file.exists(), f"{target}: no such file"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


def test_every_page_that_code_mentions_exists() -> None:
    roots = [ROOT / name for name in FOLDERS]
    files = [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / "topologies").rglob("*.yaml"),
        *(file for root in roots for ending in SOURCES for file in root.rglob(ending)),
    ]
    wrong = [
        f"{file.relative_to(ROOT)}: {mention}"
        for file in files
        for mention in MENTION.findall(file.read_text(encoding="utf-8", errors="ignore"))
        if not (ROOT / mention).exists()
    ]
    assert wrong == []


def test_every_page_is_in_the_folder_of_its_kind() -> None:
    stray = {path.name for path in DOCS.iterdir()} - {*KINDS, "assets", "images", "notebooks"}
    assert stray <= {"index.md"}


def test_the_index_has_every_page() -> None:
    linked = {
        (DOCS / target.partition("#")[0]).resolve()
        for target in LINK.findall(text_of(DOCS / "index.md"))
    }
    pages = {path for path in DOCS.rglob("*.md") if path.name != "index.md"}
    assert {path.relative_to(DOCS).as_posix() for path in pages - linked} == set()


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: p.stem)
def test_lines_are_wrapped(page: Path) -> None:
    """At about 100, so that differences are readable; tables, code and pictures have lines as long as they need."""
    for line in text_of(page).splitlines():
        if not re.match(r"\||    |.*!\[", line):
            assert len(line) <= 120, line
