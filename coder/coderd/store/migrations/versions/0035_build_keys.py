"""Session tokens of builds: the build each came from, the keys created with it, and the template's rule for its roles.

Tokens from before have none of it. They keep their owner's roles until the next build of their workspace replaces them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_KEY = ("build_id", "build_template_id", "build_organization_id")
_INDEX = "ix_api_keys_build_key_id"


def upgrade() -> None:
    """Add the columns; servers of the previous version ignore them."""
    for name in _KEY:
        op.add_column("api_keys", sa.Column(name, sa.UUID()))
    op.add_column("api_keys", sa.Column("build_key_id", sa.Text(), sa.ForeignKey("api_keys.id", ondelete="CASCADE")))
    op.add_column("api_keys", sa.Column("build_roles", sa.Text()))
    op.create_index(_INDEX, "api_keys", ["build_key_id"], postgresql_where=sa.text("build_key_id IS NOT NULL"))
    op.add_column("templates", sa.Column("full_build_tokens", sa.Boolean(), nullable=False, server_default="false"))
    op.add_column("workspace_builds", sa.Column("requested_within", sa.UUID()))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("workspace_builds", "requested_within")
    op.drop_column("templates", "full_build_tokens")
    op.drop_index(_INDEX, "api_keys")
    for name in ("build_roles", "build_key_id", *reversed(_KEY)):
        op.drop_column("api_keys", name)
