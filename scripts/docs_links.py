"""What mkdocs calls when it builds the site: files of the repository that pages link to come along, as text.

On a Git forge a page links to `../../topologies/demo.yaml`. The site has only what is in docs/, so a copy of the file
goes to `files/` of the site, and the link leads there. A link to a folder becomes plain text.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links that leave docs/ to copies in the site."""
    docs = Path(config.docs_dir).resolve()
    root = Path(config.config_file_path).resolve().parent
    here = (docs / page.file.src_uri).parent

    def lead(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        path = (here / target).resolve()
        if re.match(r"[a-z]+:", target) or path.is_relative_to(docs):
            return link[0]
        if not path.is_relative_to(root) or not path.is_file():
            return words
        copy = f"files/{path.relative_to(root).as_posix()}.txt"
        if files.get_file_from_path(copy) is None:
            files.append(File.generated(config, copy, abs_src_path=str(path)))
        up = "../" * page.file.src_uri.count("/")
        return f"[{words}]({up}{copy})"

    return LINK.sub(lead, markdown)
