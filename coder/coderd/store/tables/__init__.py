"""Every table of the schema; `load_all` fills `metadata` (coder/coderd/store/engine/metadata.py) with them.

Modules are listed by name so that a role which needs one table does not pay for this list; add yours here.
"""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "identity",
    "jobs",
    "provisioners",
    "templates",
    "workspaces",
    "builds",
    "resources",
    "agents",
    "automation",
    "user_assets",
    "wireguard",
    "web_push",
    "oauth2",
    "replicas",
    "large_nodes",
    "node_keys",
    "tasks",
    "apps",
)


def load_all() -> None:
    """Imports every module of tables, so that the metadata is complete."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")
