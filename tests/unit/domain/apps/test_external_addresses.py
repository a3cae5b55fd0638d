"""Addresses of external applications, matching the dashboard's tests (`app-address.test.ts`)."""

from __future__ import annotations

import pytest

from coder.domain.apps.external_addresses import explain_address, explain_made_address

LINKS = ["https://x", "HTTP://x", "vscode://open", "jetbrains-gateway://connect#a=b", "web+thing:x", "mailto:a@b"]
NONE = [
    "",
    "x",
    "/x",
    "//evil.test",
    "-x",
    "--help",
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "\tjavascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "FILE:x",
    "blob:https://x",
    "about:blank",
    "view-source:https://x",
    " https://x",
    "C:\\x.exe",
    "c:x",
    "\\\\host\\x.exe",
]


@pytest.mark.parametrize("url", LINKS)
def test_links(url: str) -> None:
    assert explain_address(url) == explain_made_address(url) == ""


@pytest.mark.parametrize("url", NONE)
def test_invalid_links(url: str) -> None:
    assert explain_address(url) and explain_made_address(url)


@pytest.mark.parametrize("scheme", ["https", "http", "vscode", "jetbrains", "ftp", "javascript"])
def test_agent_address_with_key_is_refused(scheme: str) -> None:
    assert "only a template's" in explain_made_address(f"{scheme}://x/?t=$SESSION_TOKEN")
