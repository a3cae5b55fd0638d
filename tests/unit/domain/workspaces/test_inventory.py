"""Possible remains of an abandoned workspace, from its state."""

from __future__ import annotations

import json

from coder.domain.workspaces.inventory import Remainder, read_inventory

STATE = json.dumps(
    {
        "version": 4,
        "resources": [
            {"mode": "data", "type": "coder_workspace", "name": "me", "instances": [{}]},
            {"mode": "managed", "type": "coder_agent", "name": "main", "instances": [{}]},
            {
                "mode": "managed",
                "module": 'module.vm["a"]',
                "type": "docker_container",
                "name": "box",
                "provider": 'provider["registry.terraform.io/kreuzwerker/docker"]',
                "instances": [{"index_key": 0, "attributes": {"id": "c0ffee", "env": ["SECRET=1"]}}],
            },
            {"mode": "managed", "type": "null_resource", "name": "x", "instances": [{"index_key": "k"}]},
        ],
    }
).encode()


def test_inventory_names_what_may_remain() -> None:
    assert read_inventory(STATE) == [
        Remainder(
            'module.vm["a"].docker_container.box[0]',
            "docker_container",
            "box",
            "registry.terraform.io/kreuzwerker/docker",
            "c0ffee",
        ),
        Remainder('null_resource.x["k"]', "null_resource", "x", "", ""),
    ]
    assert read_inventory(b"") == []
    assert read_inventory(b"half a sta") is None
