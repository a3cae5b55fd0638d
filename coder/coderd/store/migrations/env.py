"""Alembic's entry: runs on the connection `coder/coderd/store/engine/migrate.py` hands over, in its transaction."""

from __future__ import annotations

from alembic import context

from coder.coderd.store import tables
from coder.coderd.store.engine.metadata import metadata

tables.load_all()
context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
