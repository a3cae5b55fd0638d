"""A template that is shared no longer is told of like a workspace: whoever follows one of its versions is asked anew."""

from __future__ import annotations

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TRIGGER wireguard_access AFTER UPDATE OF deleted, organization_id, user_acl, group_acl ON templates "
        "FOR EACH STATEMENT EXECUTE FUNCTION wireguard_access_changed()"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER wireguard_access ON templates")
