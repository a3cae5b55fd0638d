"""Secrets in paths appear in no log line of a request, whatever its result."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

import pytest

from coder.coderd.http.server.middleware import _logged_path
from coder.net.masking import SECRET_PATHS, masked
from tests.kit.api.api_description import application

SECRET = "kept-to-Oneself.9"
OF_SECRETS = sorted({rule.rule for rule in application().url_map.iter_rules() if "<secret>" in rule.rule})
"""Arguments of routes that are secrets; an id of a secret is not one (`<id:secret>`)."""


def scope(raw: str) -> dict[str, Any]:
    """Return the scope from the listener, as the middleware leaves it."""
    path = unquote(raw.partition("?")[0])
    return {"path": re.sub("/+", "/", path) if path.startswith("/api/") else path, "raw_path": raw.encode()}


def test_table_covers_secret_routes() -> None:
    assert sorted(rule.partition("<")[0] for rule in OF_SECRETS) == sorted(SECRET_PATHS)
    assert all(rule.endswith("/<secret>") for rule in OF_SECRETS)


def test_no_other_route_is_masked() -> None:
    rules = [rule.rule for rule in application().url_map.iter_rules() if "<secret>" not in rule.rule]
    assert len(rules) > 300 and not [rule for rule in rules if masked(rule) != rule]


@pytest.mark.parametrize("rule", OF_SECRETS)
@pytest.mark.parametrize(
    "written",
    [
        "{0}",
        "{0}/",
        "{0}/more",
        "/nowhere{0}",
        "{double}",
        "{encoded}",
        "{0}%0Aforged",
        "{0}%3F{0}",
        "{0};x",
        "{0}?x=1",
    ],
)
def test_secret_is_never_logged(rule: str, written: str) -> None:
    """A route, an extra slash, no route at all, a 405 (for which no route is recorded)."""
    path = rule.replace("<secret>", SECRET)
    first = path.split("/")[2]
    double, encoded = path.replace(f"/{first}/", f"//{first}//"), path.replace(first, f"%{ord(first[0]):X}{first[1:]}")
    address = written.format(path, double=double, encoded=encoded)
    logged = _logged_path(scope(address))
    assert SECRET not in logged and SECRET not in unquote(logged)
    assert logged.isprintable() and "***" in logged


def test_other_paths_are_unchanged() -> None:
    address = quote("/api/v2/users/né\n", safe="/")
    assert _logged_path(scope(address)) == address
