"""Every table of the schema; `load_all` fills `metadata` (coder/coderd/store/engine/metadata.py) with them.

A role that needs one table imports its module, and does not pay for this list; add yours here.
"""

from __future__ import annotations


def load_all() -> None:
    """Imports every module of tables, so that the metadata is complete."""
    from coder.coderd.store.tables import (  # noqa: F401 - each adds its tables to the metadata
        agents,
        apps,
        automation,
        builds,
        identity,
        jobs,
        large_nodes,
        node_keys,
        oauth2,
        provisioners,
        replicas,
        resources,
        tasks,
        templates,
        user_assets,
        web_push,
        wireguard,
        workspaces,
    )
