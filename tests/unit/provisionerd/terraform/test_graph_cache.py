"""A cached graph serves only states whose resources it all names."""

from __future__ import annotations

import json

from coder.provisionerd.terraform.graph_cache import LIMIT, GraphCache, template_key

DOT = 'digraph { "[root] module.a.terraform_data.x (expand)" "[root] terraform_data.y (expand)" }'


def state(*resources: tuple[str, str, str]) -> bytes:
    listed = [
        {"mode": "managed", "module": module, "type": kind, "name": name} | ({} if module else {"module": None})
        for module, kind, name in resources
    ]
    for one in listed:
        if one["module"] is None:
            del one["module"]
    return json.dumps({"version": 4, "resources": listed}).encode()


def test_hit_requires_known_resources() -> None:
    graphs, key = GraphCache(), template_key(b"template", b"")
    assert graphs.find(key, b"") == ""
    graphs.store(key, DOT)
    assert graphs.find(key, b"") == DOT
    assert graphs.find(key, state(('module.a["k"]', "terraform_data", "x"), ("", "terraform_data", "y"))) == DOT
    assert graphs.find(key, state(("", "terraform_data", "lost"))) == ""
    assert graphs.find(key, b"no json") == ""
    assert graphs.find(template_key(b"templat", b"e"), b"") == ""


def test_bounded() -> None:
    graphs = GraphCache()
    for number in range(LIMIT + 1):
        graphs.store(bytes([number]), DOT)
    assert graphs.find(b"\x00", b"") == ""
    assert graphs.find(bytes([LIMIT]), b"") == DOT
