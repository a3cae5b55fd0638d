"""Files are looked for by whoever uploaded them and by what was made of them; roles everybody gets change rights, too."""

from __future__ import annotations

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

# Each upload asks for those nobody made anything of, and each deletion of a file for who refers to it: neither may read
# all jobs there ever were. In the order in which an import that has ended writes to them.
_INDEXES = (
    ("files", "created_by"),
    ("template_version_terraform", "module_files_id"),
    ("provisioner_jobs", "file_id"),
)


def upgrade() -> None:
    # Replicas of the release before may be writing, and all migrations are one transaction: tables that get a trigger
    # here or in 0030 come first, as in what they write.
    op.execute("LOCK TABLE organizations, templates IN SHARE ROW EXCLUSIVE MODE")
    for table, column in _INDEXES:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])
    # As migration 0008 has it for the other tables that rights come from.
    op.execute(
        "CREATE TRIGGER wireguard_access AFTER UPDATE OF default_member_roles, deleted ON organizations "
        "FOR EACH STATEMENT EXECUTE FUNCTION wireguard_access_changed()"
    )


def downgrade() -> None:
    op.execute("DROP TRIGGER wireguard_access ON organizations")
    for table, column in _INDEXES:
        op.drop_index(op.f(f"ix_{table}_{column}"), table)
