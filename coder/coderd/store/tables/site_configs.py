"""The table of the site's settings, by key."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from coder.coderd.store.engine.metadata import metadata

site_configs = Table(
    "site_configs",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
