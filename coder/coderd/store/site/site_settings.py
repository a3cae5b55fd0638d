"""Site settings in the database: the deployment id, the default organization, keys by name."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from sqlalchemy import func, insert, select, text
from sqlalchemy.dialects.postgresql import insert as upsert

from coder.base.errors import CoderError
from coder.coderd.store.tables.people import groups, organization_members, organizations, users
from coder.coderd.store.tables.site_configs import site_configs
from coder.domain.foundation.zero import ZERO_TIME

if TYPE_CHECKING:
    from coder.coderd.store.engine.database import Tx

PREBUILDS_USER_ID = UUID("c42fdf75-3097-471c-8c33-fb52454d81c0")
"""The system user that owns unclaimed prebuilt workspaces; upstream's id."""

_DEPLOYMENT_ID = "deployment_id"
ORIGINAL_IMPORT = "original_import"
"""Key of the progress of an import (`store/original/progress.py`), which writes the deployment id last."""
_CONFIGS = 7309  # seed of their advisory locks: distinct from the numbered locks


async def get_config(tx: Tx, key: str) -> str | None:
    statement = select(site_configs.c.value).where(site_configs.c.key == key)
    return (await tx.execute(statement)).scalar_one_or_none()


async def lock_config(tx: Tx, key: str) -> None:
    """Lock a setting until the transaction ends: for writes that depend on the stored value. There may be no row
    yet."""
    await tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, _CONFIGS))))


async def put_config(tx: Tx, key: str, value: str) -> None:
    statement = upsert(site_configs).values(key=key, value=value)
    await tx.execute(statement.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


async def ensure_config(tx: Tx, key: str, value: str) -> str:
    """Store the value unless there is one; return the stored value.

    For generated secrets: replicas that start together all get the same one.
    """
    await tx.execute(upsert(site_configs).values(key=key, value=value).on_conflict_do_nothing())
    stored = await get_config(tx, key)
    return value if stored is None else stored


async def ensure_deployment(tx: Tx, now: datetime) -> UUID:
    """Return the deployment's id; on the first start create it, and the default organization with its Everyone
    group. Raises CoderError `import_unfinished`."""
    config = await get_config(tx, _DEPLOYMENT_ID)
    if config is not None:
        return UUID(config)
    if await get_config(tx, ORIGINAL_IMPORT) is not None:
        raise CoderError(
            "import_unfinished",
            "an import from the original Coder into this database has not finished",
            "Run `coder server import` again: it continues. Or use an empty database.",
        )
    # Two replicas may start together: the lock lets one of them create everything.
    await tx.execute(text("SELECT pg_advisory_xact_lock(7301)"))
    config = await get_config(tx, _DEPLOYMENT_ID)
    if config is not None:
        return UUID(config)
    deployment_id, organization_id = uuid4(), uuid4()
    await put_config(tx, _DEPLOYMENT_ID, str(deployment_id))
    await tx.execute(
        insert(organizations).values(
            id=organization_id,
            name="coder",
            display_name="Coder",
            description="Builtin default organization.",
            created_at=now,
            updated_at=now,
            is_default=True,
        )
    )
    await tx.execute(insert(groups).values(id=organization_id, organization_id=organization_id, name="Everyone"))
    await _insert_prebuilds_owner(tx, organization_id, now)
    return deployment_id


async def _insert_prebuilds_owner(tx: Tx, organization_id: UUID, now: datetime) -> None:
    await tx.execute(
        insert(users).values(
            id=PREBUILDS_USER_ID,
            email="prebuilds@system",
            username="prebuilds",
            name="Prebuilds Owner",
            created_at=now,
            updated_at=now,
            last_seen_at=ZERO_TIME,
            status="active",
            login_type="none",
            is_system=True,
        )
    )
    await tx.execute(
        insert(organization_members).values(
            organization_id=organization_id, user_id=PREBUILDS_USER_ID, created_at=now, updated_at=now
        )
    )


async def ping(tx: Tx) -> None:
    """Run the smallest possible query."""
    await tx.execute(text("SELECT 1"))


async def list_configs(tx: Tx, prefix: str) -> dict[str, str]:
    """Return all settings with this prefix."""
    statement = select(site_configs.c.key, site_configs.c.value).where(site_configs.c.key.startswith(prefix))
    return {row[0]: row[1] for row in await tx.execute(statement)}


async def lock_keys(tx: Tx) -> None:
    """Lock the keys until the transaction ends."""
    await tx.execute(text("SELECT pg_advisory_xact_lock(7303)"))
