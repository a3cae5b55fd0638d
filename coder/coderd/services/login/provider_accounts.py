"""The user that an identity provider's account belongs to: find, create, convert and update it.

The account's id at the provider is looked up first, its email address second. A user with another login type is never
taken over.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coder.api.base.enums import LoginType
from coder.api.base.refusals import Refusal
from coder.base.json_types import Json
from coder.coderd.services.login.login_conversion import Conversion, proof_of
from coder.coderd.services.login.oauth_exchange import TokenGrant
from coder.coderd.services.people import git_ssh_keys, new_users
from coder.coderd.store.access import keys as key_store
from coder.coderd.store.login import user_links
from coder.coderd.store.people import organizations as organization_store
from coder.coderd.store.people import system_users
from coder.coderd.store.people import users as user_store
from coder.coderd.store.people.users import UserRow
from coder.domain.login.identity import Person

if TYPE_CHECKING:
    from datetime import datetime

    from coder.coderd.store.engine.database import Tx
    from coder.coderd.store.people.users import UserChanges


NAME_TRIES = 10


class LoginRefused(Refusal):
    """A refused login, shown as a page with `message` as its heading."""

    kind = "forbidden"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login attempt after the provider's callback."""

    login_type: LoginType
    person: Person
    granted: TokenGrant
    claims: Mapping[str, Json]
    "Claims stored for the pages about sync: `{id_token_claims, user_info_claims, merged_claims}` for OIDC."
    allow_signups: bool
    signups_disabled: str = ""
    ip: str = ""
    user_agent: str = ""
    convert: Conversion | None = None


async def check_address(tx: Tx, user: UserRow, changes: UserChanges) -> None:
    existing = await system_users.get_user_by_email(tx, changes["email"]) if "email" in changes else None
    if existing is not None and existing.id != user.id:
        raise LoginRefused(
            "Email belongs to another user",
            "Your email address at the provider is that of another user here. Contact an admin.",
        )


async def find_account(tx: Tx, attempt: Attempt) -> UserRow | None:
    user_id = await user_links.find_linked_user(tx, attempt.login_type, attempt.person.linked_id)
    if user_id is not None:
        return await system_users.get_user(tx, user_id)
    user = await system_users.get_user_by_email(tx, attempt.person.email)
    if user is None or user.login_type != attempt.login_type:
        return user
    link = await user_links.get_link(tx, user.id, attempt.login_type)
    if link is not None and link.linked_id and link.linked_id != attempt.person.linked_id:
        # An address that was assigned to another person must not open the account of its previous owner.
        raise LoginRefused(
            "Account belongs to another user",
            "Your email address is that of a user with another account at the provider. Contact an admin.",
        )
    return user


def account_changes(user: UserRow, attempt: Attempt, now: datetime) -> UserChanges:
    person = attempt.person
    changed: UserChanges = {"updated_at": now}
    if attempt.login_type == "github":
        changed["github_com_user_id"] = int(person.linked_id)
    if person.email and person.email.lower() != user.email.lower():
        changed["email"] = person.email
    if person.name and person.name != user.name:
        changed["name"] = person.name
    if person.picture and person.picture != user.avatar_url:
        changed["avatar_url"] = person.picture
    return changed


async def create_account(tx: Tx, attempt: Attempt, pair: git_ssh_keys.KeyPair | None, now: datetime) -> UserRow:
    first = not await user_store.count_users(tx)
    if first:
        # Two logins may race for an empty site: the lock serializes them, and the second one checks again.
        await user_store.lock_first_user(tx)
        first = not await user_store.count_users(tx)
    if not attempt.allow_signups and not first:
        raise LoginRefused(
            "Signups are disabled",
            attempt.signups_disabled or "Ask an administrator to create an account for you.",
        )
    if pair is None:
        raise LoginRefused("The account was deleted", "It was deleted during the login. Log in again.")
    organization = await organization_store.get_default_organization(tx)
    new_user = new_users.NewUser(
        email=attempt.person.email,
        username=await _free_name(tx, attempt.person.username),
        name=attempt.person.name,
        login_type=attempt.login_type,
        status="active",
        organization_ids=[organization.id],
        roles=["owner"] if first else [],
    )
    return await new_users.insert_in(tx, new_user, "", pair, now)


async def _free_name(tx: Tx, username: str) -> str:
    for number in range(NAME_TRIES):
        suffix = f"-{secrets.token_hex(3)}" if number else ""
        name = username[: 32 - len(suffix)].rstrip("-") + suffix
        if await system_users.get_user_by_name(tx, name) is None:
            return name
    raise LoginRefused("No username is available", f"Every name like {username!r} is taken. Contact an admin.")


async def convert_account(
    tx: Tx, attempt: Attempt, conversion: Conversion, owner: UserRow | None, now: datetime
) -> UserRow:
    if owner is not None and owner.id != conversion.user_id:
        raise LoginRefused("Account already linked", "Another user logs in with that account or has its email address.")
    user = await system_users.get_user(tx, conversion.user_id, lock=True)
    if user is None or user.deleted:
        raise LoginRefused("No such user", "The user who requested this was deleted.")
    if user.login_type != "password":
        raise LoginRefused(
            "Already changed", "Your login type is no longer a password. Log in with your current login type."
        )
    if not hmac.compare_digest(proof_of(user), conversion.proof):
        raise LoginRefused("Password changed", "Your password was changed meanwhile. Start again.")
    # The password ends here, with the sessions it opened: an account keeps only one way to log in.
    await user_store.update_user(
        tx, user.id, login_type=attempt.login_type, hashed_password="", one_time_passcode_hash=None, updated_at=now
    )
    await key_store.delete_sessions_by(tx, user.id, "password")
    return replace(user, login_type=attempt.login_type, hashed_password="", updated_at=now)
