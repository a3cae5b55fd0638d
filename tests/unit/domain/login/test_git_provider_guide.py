"""The settings of docs/guides/git-providers.md, read as the server reads them, against the results the guide names."""

from __future__ import annotations

import re

import pytest

from coder.domain.foundation.patterns import compiled
from coder.domain.login.external_providers import read_providers
from tests.kit.paths import ROOT

_SECTION = re.compile(r"^### (?P<name>[^\n]+)\n(?P<body>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(
    r"Result: authorize `(.*?)`,\s+token\s+`(.*?)`,\s+scopes\s+(.*?),\s+repositories of\s+`(.*?)`\.", re.DOTALL
)
SECTIONS = {
    section["name"]: section["body"]
    for section in _SECTION.finditer((ROOT / "docs/guides/git-providers.md").read_text())
    if "```ini" in section["body"]
}


def test_guide_has_every_git_provider() -> None:
    kinds = {found for body in SECTIONS.values() for found in re.findall("_TYPE=(.*)", body)}
    wanted = {"github", "gitlab", "gitea", "bitbucket-cloud", "bitbucket-server", "azure-devops", "azure-devops-entra"}
    assert kinds == wanted


@pytest.mark.parametrize("name", SECTIONS)
def test_git_provider_settings_of_guide(name: str) -> None:
    body = SECTIONS[name]
    block = body.partition("```ini\n")[2].partition("```")[0]
    (provider,) = read_providers(dict(line.split("=", 1) for line in block.splitlines()), None)
    result = _RESULT.search(body)
    assert result is not None
    scopes = result[3].strip("`").replace("\n", " ")
    assert (provider.auth_url, provider.token_url) == (result[1], result[2])
    assert scopes == (" ".join(provider.scopes) or "none")
    assert compiled(provider.regex).search(f"https://{result[4]}/team/app")
    assert not compiled(provider.regex).search("https://example.org/team/app")
