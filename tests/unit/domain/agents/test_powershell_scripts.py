"""The scripts for Windows, read by a grammar of PowerShell: none of them has been run by us."""

from __future__ import annotations

import pytest
import tree_sitter
import tree_sitter_powershell as grammar

from coder.cli.completion import SCRIPTS
from coder.coderd.services.site.install_scripts import install_ps1
from coder.domain.agents.init_scripts import init_script

URL = "https://coder.example.com"
TEXTS = {
    "agent": init_script("windows", "amd64", URL) or "",
    "installer": install_ps1(URL, "v1.2.3"),
    "completion": SCRIPTS["powershell"],
}


def faults(text: str) -> list[str]:
    """Where the grammar could not go on, or had to think something up."""
    tree = tree_sitter.Parser(tree_sitter.Language(grammar.language())).parse(text.encode())
    found, left = [], [tree.root_node]
    while left:
        node = left.pop()
        if node.is_error or node.is_missing:
            found.append(f"line {node.start_point[0] + 1}: {(node.text or b'').decode()[:60]!r}")
        left += node.children
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_it_is_powershell(name: str) -> None:
    assert faults(TEXTS[name]) == []


@pytest.mark.parametrize("name", TEXTS)
def test_a_brace_that_is_lost_would_be_seen(name: str) -> None:
    head, _, tail = TEXTS[name].rpartition("}")
    assert faults(head + tail)
