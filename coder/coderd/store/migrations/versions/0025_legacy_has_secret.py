"""An OAuth2 application that may ask without PKCE has a secret: without either anybody could use its codes."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_APPS = "oauth2_provider_apps"
_NAME = "ck_oauth2_provider_apps_legacy_has_secret"


def upgrade() -> None:
    # Clients that said after an owner had called them legacy that they keep no secret: from now on they need PKCE.
    op.execute("UPDATE oauth2_provider_apps SET legacy = false WHERE legacy AND public_client")
    op.create_check_constraint(op.f(_NAME), _APPS, "NOT (legacy AND public_client)")


def downgrade() -> None:
    op.drop_constraint(op.f(_NAME), _APPS)
