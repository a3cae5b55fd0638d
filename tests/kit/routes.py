"""Routes by what they change: a table of a test names them all, or says why one is not in it."""

from __future__ import annotations

from coder.coderd.http.server.declarations import route_of
from tests.kit.openapi import application


def changing(parameter: str) -> set[str]:
    """`METHOD rule` of every route that is no reading one and has the parameter in its path."""
    found = set()
    for rule in application().url_map.iter_rules():
        said = route_of(application().view_functions[rule.endpoint])
        if said is not None and f"<{parameter}>" in rule.rule:
            found |= {f"{method} {rule.rule}" for method in said.methods if method not in {"GET", "HEAD", "OPTIONS"}}
    return found
