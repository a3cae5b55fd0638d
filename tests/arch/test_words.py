"""One word for one thing, wherever people read: what builds workspaces is called a provisioner.

"Daemon" stays in names that programs read (settings, fields, metrics, headers, addresses) and in the texts that peers
and recordings of the protocol know. Read are the strings of the product, the texts of the dashboard, the guides and
what the starter templates say of themselves.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORD = re.compile(r"\bdaemons?\b", re.IGNORECASE)
KEPT = {
    "Provisioner Daemons": "name of a setting, and the title of its page of health",
    "Provisioner Daemon Types": "name of a setting",
    "Provisioner Daemon Pre-shared Key (PSK)": "name of a setting",
    "EPD01: No active provisioner daemons found!": "the finding's words, by which health reports are read",
    "No provisioner daemons found": "the words of a list that is empty",
    "provisioner daemon key required": "recorded",
    "provisioner daemon key invalid": "clients look for it",
    "provisioner daemon psk invalid": "beside it",
    "You aren't allowed to create provisioner daemons with scope \"": "recorded",
    "connection to provisioner daemon broken": "the protocol's word for it",
    "provisioner daemon was shutdown gracefully": "the protocol's word for it",
}
GUIDES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs/guides").glob("*.md")),
    *sorted((ROOT / "coder/coderd/examples").glob("*/README.md")),
)
PAGES = ROOT / "coder/dashboard/src"
TEXT = re.compile(r'"([^"\n]*\s[^"\n]*)"|`([^`\n]*\s[^`\n]*)`|(?<!=)>([^<>{};]+)<')
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)\n]*\)|Docker daemon", re.DOTALL)


@cache
def strings() -> dict[str, list[str]]:
    """Of the product, by file: what has a blank in it and is no docstring."""
    found = {}
    for path in sorted((ROOT / "coder").rglob("*.py")):
        if "node_modules" in path.parts or "_pb2" in path.name or not WORD.search(text := path.read_text()):
            continue
        found[str(path.relative_to(ROOT))] = list(prose_of(ast.parse(text)))
    return found


def prose_of(tree: ast.Module) -> Iterator[str]:
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in statements:
            continue
        if isinstance(node.value, str) and " " in node.value.strip():
            yield node.value


def texts(source: str) -> list[str]:
    """What stands in quotation marks or between tags, without comments and values."""
    lines = (re.sub(r"(?:^|\s)//.*$", "", line) for line in source.splitlines())
    found = (" ".join("".join(match.groups("")).split()) for match in TEXT.finditer("\n".join(lines)))
    plain = (re.sub(r"\$\{[^}]*\}", "", text) for text in found if not text.startswith("/"))
    return [text for text in plain if not re.search(r"[<>={}]", text)]  # code between two strings is none


def test_the_product_says_provisioner() -> None:
    said = {text for found in strings().values() for text in found if WORD.search(text)}
    assert sorted(said - KEPT.keys()) == []
    assert sorted(KEPT.keys() - said) == [], "kept for nothing"


def test_the_dashboard_says_provisioner() -> None:
    said = {}
    for path in sorted(PAGES.rglob("*.ts*")):
        if ".test." not in path.name and path.name != "types.ts":
            said[path.name] = [text for text in texts(path.read_text()) if WORD.search(text) and text not in KEPT]
    assert {name: found for name, found in said.items() if found} == {}


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_guides_say_provisioner(path: Path) -> None:
    assert WORD.findall(CODE.sub(" ", path.read_text())) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>No daemon is here</p>", ["No daemon is here"]),
        ("<p>\n  No daemon\n  is here\n</p>", ["No daemon is here"]),
        ('title="A daemon waits"', ["A daemon waits"]),
        ("title={`${name}: a daemon waits`}", [": a daemon waits"]),
        ("const daemons = useQuery(keyDaemons); // the daemons of a key", []),
        ('words: "daemons"', []),
    ],
)
def test_texts_are_told_from_names(source: str, found: list[str]) -> None:
    assert [text for text in texts(source) if WORD.search(text)] == found
