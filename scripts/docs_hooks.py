"""MkDocs hooks: expand patterns in the navigation, and turn links out of the documentation into plain names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s:]+)(#[^)]*)?\)")


def named(entry: Any) -> Iterator[str]:
    """Yield every page and pattern of a navigation."""
    if isinstance(entry, str):
        yield entry
        return
    for value in entry.values() if isinstance(entry, dict) else entry:
        yield from named(value)


def expanded(entry: Any, docs: Path, listed: set[str]) -> Any:
    """Return the navigation with patterns replaced by pages, a folder's README first."""
    if isinstance(entry, str):
        if "*" not in entry:
            return entry
        pages = {path.relative_to(docs).as_posix() for path in docs.glob(entry)} - listed
        return sorted(pages, key=lambda name: (not name.endswith("README.md"), name))
    if isinstance(entry, dict):
        return {title: expanded(value, docs, listed) for title, value in entry.items()}
    return [expanded(value, docs, listed) for value in entry]


def without_empty(entries: list[Any]) -> list[Any]:
    return [entry for entry in entries if not (isinstance(entry, dict) and [] in entry.values())]


def navigation(entries: list[Any], docs: Path) -> list[Any]:
    listed = {name for name in named(entries) if "*" not in name}
    return without_empty(expanded(entries, docs, listed))


def on_config(config: Any) -> Any:
    config["nav"] = navigation(config["nav"], Path(config["docs_dir"]))
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def kept(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        return match[1] if target.startswith("../") else match[0]

    return _LINK.sub(kept, markdown)
