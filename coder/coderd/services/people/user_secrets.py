"""Secrets of users: write-only in the API, and delivered to the owner's workspaces.

Only their owner may use them; an owner of the site may not, either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from coder.api.base.refusals import Conflict, InvalidFields, NotFound
from coder.api.people.user_secrets import (
    CreateUserSecretRequest,
    ImportUserSecretsRequest,
    UpdateUserSecretRequest,
    UserSecret,
)
from coder.base.errors import CoderError
from coder.base.ids import new_uuid
from coder.base.json_types import as_object, as_text
from coder.coderd.services.access.authorization import may, require
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.foundation.field_checks import check_request
from coder.coderd.services.foundation.object_limits import within_limit
from coder.coderd.services.foundation.sandbox import (
    SandboxEvaluationError,
    SandboxFailedError,
    refused_evaluation,
)
from coder.coderd.services.foundation.uniqueness import constraint_refusals
from coder.coderd.store.engine.sql_types import ColumnValues
from coder.coderd.store.people import system_user_secrets
from coder.coderd.store.people import user_secrets as store
from coder.coderd.store.people.user_secrets import UserSecretRow
from coder.domain.access.policy import Class, Object, Subject
from coder.rpc.proto import agent_pb2

if TYPE_CHECKING:
    from uuid import UUID

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserRow

_MAX_IMPORT = 100


def _sealer(ctx: Context) -> Sealer:
    return ctx.services.sealer


def _require(subject: Subject, action: str, user: UserRow) -> None:
    """Require `action` on the user's secrets; single ones are narrowed by `_load` and lists by the caller."""
    require(subject, action, Class("user_secret", owner_id=user.id, narrowed=True), hidden=False)


def secret_object(row: UserSecretRow) -> Object:
    """Return the policy's object of a secret."""
    return Object("user_secret", str(row.id), owner_id=row.user_id)


async def list_secrets(ctx: Context, subject: Subject, user: UserRow) -> list[UserSecret]:
    _require(subject, "read", user)
    rows = await ctx.db.read(store.list_secrets, user.id)
    return [secret_view(row) for row in rows if may(subject, "read", secret_object(row))]


async def get_secret(ctx: Context, subject: Subject, user: UserRow, name: str) -> UserSecret:
    _require(subject, "read", user)
    return secret_view(await ctx.db.read(_load, subject, "read", user.id, name))


async def _load(tx: Tx, subject: Subject, action: str, user_id: UUID, name: str) -> UserSecretRow:
    """Load a secret on which the caller may do `action`. Raises NotFound, Forbidden."""
    row = await system_user_secrets.get_secret(tx, user_id, name)
    if row is None:
        raise NotFound
    require(subject, action, secret_object(row))
    return row


async def create_secret(ctx: Context, subject: Subject, user: UserRow, request: CreateUserSecretRequest) -> UserSecret:
    """Create a secret. Raises Forbidden, InvalidFields, Conflict."""
    _require(subject, "create", user)
    row = _new_row(ctx, user, request.name, request.value, request)
    with constraint_refusals(_conflicts()):
        await ctx.db.run(_insert, user, [row])
    return secret_view(row)


async def _insert(tx: Tx, user: UserRow, rows: Sequence[UserSecretRow]) -> None:
    async with within_limit(tx, "secrets", user.id, rows[0].created_at):
        for row in rows:
            await store.insert_secret(tx, row)


def _new_row(ctx: Context, user: UserRow, name: str, value: str, request: CreateUserSecretRequest) -> UserSecretRow:
    now = ctx.clock.now()
    env_name = "" if request.env_name is UNSET else request.env_name
    file_path = "" if request.file_path is UNSET else request.file_path
    enabled = True if request.enabled is UNSET else request.enabled
    check_request(
        CreateUserSecretRequest(name=name, value=value, env_name=env_name, file_path=file_path, enabled=enabled)
    )
    return UserSecretRow(
        id=new_uuid(),
        user_id=user.id,
        name=name,
        description="" if request.description is UNSET else request.description,
        env_name=env_name,
        file_path=file_path,
        enabled=enabled,
        value=_sealer(ctx).seal(value),
        created_at=now,
        updated_at=now,
    )


async def update_secret(
    ctx: Context, subject: Subject, user: UserRow, name: str, request: UpdateUserSecretRequest
) -> UserSecret:
    """Change a secret; absent fields stay unchanged. Raises Forbidden, NotFound, InvalidFields, Conflict."""
    _require(subject, "update", user)
    row = await ctx.db.read(_load, subject, "update", user.id, name)
    values: ColumnValues = {
        field: getattr(request, field)
        for field in ("description", "env_name", "file_path", "enabled")
        if getattr(request, field) is not UNSET
    }
    whole = CreateUserSecretRequest(  # validate the whole secret, not the change alone
        name=row.name,
        value="kept" if request.value is UNSET else request.value,
        env_name=row.env_name if request.env_name is UNSET else request.env_name,
        file_path=row.file_path if request.file_path is UNSET else request.file_path,
        enabled=row.enabled if request.enabled is UNSET else request.enabled,
    )
    check_request(whole)
    if request.value is not UNSET:
        values["value"] = _sealer(ctx).seal(request.value)
    now = ctx.clock.now()
    values["updated_at"] = now

    async def write(tx: Tx) -> None:
        async with within_limit(tx, "secrets", user.id, now):
            await store.update_secret(tx, row.id, values)

    with constraint_refusals(_conflicts()):
        await ctx.db.run(write)
    return secret_view(await ctx.db.read(_load, subject, "update", user.id, name))


async def delete_secret(ctx: Context, subject: Subject, user: UserRow, name: str) -> None:
    _require(subject, "delete", user)
    row = await ctx.db.read(_load, subject, "delete", user.id, name)
    await ctx.db.run(store.delete_secret, row.id)


async def import_secrets(
    ctx: Context, subject: Subject, user: UserRow, request: ImportUserSecretsRequest
) -> list[UserSecret]:
    """Create a secret for each name of a file, with an environment variable of the same name: all or none.

    Raises Forbidden, InvalidFields, Conflict.
    """
    _require(subject, "create", user)
    check_request(request)
    pairs = await _parse(ctx, user, request)
    spec = CreateUserSecretRequest(name="", value="")
    rows = []
    for name, value in pairs.items():
        spec.env_name = name
        rows.append(_new_row(ctx, user, name, value, spec))
    with constraint_refusals(_conflicts()):
        await ctx.db.run(_insert, user, rows)
    return [secret_view(row) for row in rows]


async def _parse(ctx: Context, user: UserRow, request: ImportUserSecretsRequest) -> Mapping[str, str]:
    sandbox = ctx.services.api.sandbox
    try:
        pairs = await sandbox.call(
            "secrets", {"format": request.format, "content": request.content}, caller=str(user.id)
        )
    except SandboxFailedError as error:
        raise refused_evaluation(error) from error
    except SandboxEvaluationError as error:
        raise InvalidFields(("content", error.message)) from error
    if isinstance(pairs, str):
        raise InvalidFields(("content", pairs))
    pairs = as_object(pairs)
    if not 0 < len(pairs) <= _MAX_IMPORT:
        raise InvalidFields(("content", f"must have 1 to {_MAX_IMPORT} secrets"))
    return {name: as_text(value) for name, value in pairs.items()}


_TAKEN = {
    "uq_user_secrets_user_id_name": ("name", "name already in use"),
    "ix_user_secrets_user_id_env_name": ("env_name", "environment variable already in use"),
    "ix_user_secrets_user_id_file_path": ("file_path", "file path already in use"),
}


def _conflicts() -> dict[str, Conflict]:
    return {index: Conflict("Validation failed.", validations=[fault]) for index, fault in _TAKEN.items()}


def open_secrets(ctx: Context, rows: Iterable[UserSecretRow]) -> list[agent_pb2.WorkspaceSecret]:
    """Return stored secrets in plain text, to be sent over the agent's own connection."""
    secrets = []
    for row in rows:
        try:
            value = _sealer(ctx).open(row.value).reveal().encode()
        except CoderError as error:
            # Starting a workspace without a secret is better than not starting it.
            ctx.log.error("a secret cannot be delivered", secret=row.name, owner=row.user_id, error=error)
            continue
        secrets.append(agent_pb2.WorkspaceSecret(env_name=row.env_name, file_path=row.file_path, value=value))
    return secrets


def secret_view(row: UserSecretRow) -> UserSecret:
    return UserSecret(
        id=row.id,
        name=row.name,
        description=row.description,
        env_name=row.env_name,
        file_path=row.file_path,
        enabled=row.enabled,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
