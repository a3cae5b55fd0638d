"""Every table of the schema; `load_all` fills `metadata` (coder/coderd/store/engine/metadata.py) with them.

A role that needs a single table imports its module, and does not pay for this list; add new ones here.
"""

from __future__ import annotations


def load_all() -> None:
    """Import every module of tables, so that the metadata is complete."""
    from coder.coderd.store.tables import (  # noqa: F401 - each adds its tables to the metadata
        agents,
        apps,
        audit,
        builds,
        jobs,
        large_nodes,
        node_keys,
        notifications,
        oauth2,
        people,
        provisioners,
        proxies,
        replicas,
        resources,
        rollouts,
        site_configs,
        tasks,
        templates,
        user_secrets,
        user_skills,
        web_push,
        wireguard,
        workspaces,
    )
