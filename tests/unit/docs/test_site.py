"""The site of the documentation builds without a warning, loads nothing from elsewhere, and its search works."""

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.chromium import QUIET

LOADED = {"src", "srcset", "data", "poster", "action"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=root,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Loads(HTMLParser):
    """What a page loads: all addresses but those of links that a reader may click."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in LOADED or (name == "href" and tag != "a"):
                self.found.append(value or "")
            elif name == "class":
                self.classes.update((value or "").split())
            elif name == "style":
                self.found += re.findall(r"url\(([^)]*)\)", value or "")


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(?:[a-z]+:)?//", address.strip("\"' ")))


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [address for address in loads.found if is_elsewhere(address)] == [], page.name
        # The theme would fetch a script to draw these.
        assert "mermaid" not in loads.classes, page.name


def test_styles_load_nothing_from_elsewhere(site: Path) -> None:
    styles = sorted(site.rglob("*.css"))
    assert styles
    for style in styles:
        text = style.read_text(encoding="utf-8")
        loaded = re.findall(r"(?:url\(|@import\s+)([^)\s;]*)", text)
        assert [address for address in loaded if is_elsewhere(address)] == [], style.name


def test_scripts_of_pages_are_files_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # its addresses begin at the root of a server
            continue
        for script in re.findall(r'<script[^>]* src="([^"]*)"', page.read_text(encoding="utf-8")):
            assert (page.parent / script).exists(), f"{page.name}: {script}"


def test_files_of_the_repository_that_pages_link_to_are_in_the_site(site: Path) -> None:
    page = (site / "reference" / "topology.html").read_text(encoding="utf-8")
    assert 'href="../files/topologies/demo.yaml.txt"' in page
    copy = site / "files" / "topologies" / "demo.yaml.txt"
    original = Path(__file__).resolve().parents[3] / "topologies" / "demo.yaml"
    assert copy.read_bytes() == original.read_bytes()


@pytest.mark.browser
def test_the_search_works_from_a_folder(site: Path, tmp_path: Path) -> None:
    """Browsers start no Worker for such pages; docs/assets/iframe-worker.js stands in for it."""
    done = subprocess.run(
        [
            "chromium",
            *QUIET,
            "--enable-logging=stderr",
            "--v=0",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            f"{(site / 'index.html').as_uri()}?q=custody",
        ],
        text=True,
        capture_output=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'md-search-result__meta">([^<]*)<', done.stdout)
    assert found is not None
    assert re.fullmatch(r"\d+ matching documents", html.unescape(found[1]).strip())
    assert "CONSOLE" not in done.stderr
