"""Scripts for Windows, parsed by a PowerShell grammar: no test runs them."""

from __future__ import annotations

import pytest
import tree_sitter
import tree_sitter_powershell as grammar

from coder.cli.program.completion import SCRIPTS
from coder.coderd.services.site.install_scripts import install_ps1
from coder.domain.agents.init_scripts import init_script

URL = "https://coder.example.com"
TEXTS = {
    "agent": init_script("windows", "amd64", URL) or "",
    "installer": install_ps1(URL, "v1.2.3"),
    "completion": SCRIPTS["powershell"],
}


def faults(text: str) -> list[str]:
    """Return the nodes that the grammar could not parse, or had to insert."""
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
def test_missing_brace_is_detected(name: str) -> None:
    head, _, tail = TEXTS[name].rpartition("}")
    assert faults(head + tail)
