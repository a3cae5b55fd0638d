"""Objects that an OAuth2 application creates with a user's consent, and whether they outlive the consent.

Revoking a consent must end everything the application could do with it. An object that keeps giving access is a key,
and is revoked; or it cannot be revoked, and no application may create it; or it is a change to the site, an
organization or a workspace, like any change by the user: it stays, and the audit log names the author and the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fate(Enum):
    """Fate of a kind of object when the consent is revoked."""

    ENDS = "revoked with the consent"
    REFUSED = "applications may not create it"
    STAYS = "stays, with an entry in the audit log"


@dataclass(frozen=True, slots=True)
class LastingObject:
    """A kind of object that an application can create."""

    what: str
    """Name in a refusal, in the plural."""
    fate: Fate
    why: str


_SHARED = "other users own it too, and rely on it"
_OWNED = "it belongs to its holder, and grants no access here"
_GRANTS = "its members keep what it permits: an accomplice of the application, for example"

LASTING = {
    "api_key": LastingObject("keys", Fate.ENDS, "it is equivalent to the application's token"),
    "provisioner_daemon": LastingObject("provisioners", Fate.ENDS, "their connections end with their key"),
    "build_token": LastingObject("session tokens of builds", Fate.ENDS, "it is a key of the workspace's owner"),
    "consent": LastingObject("consents", Fate.REFUSED, "another application would keep what this one consented to"),
    "wireguard_client": LastingObject("WireGuard devices", Fate.REFUSED, "a key pair that is not linked to a consent"),
    "agent_token": LastingObject(
        "tokens of agents", Fate.REFUSED, "an agent gets its owner's private key and secrets as long as it runs"
    ),
    "external_auth_link": LastingObject(
        "links to external accounts", Fate.REFUSED, "workspaces would use the account that the application chose"
    ),
    "custom_role": LastingObject("custom roles", Fate.REFUSED, _GRANTS),
    "role_grant": LastingObject("grants of roles", Fate.REFUSED, _GRANTS),
    "activation": LastingObject("activations of users", Fate.REFUSED, "an accomplice could sign in again"),
    "group": LastingObject("groups", Fate.REFUSED, _GRANTS),
    "idp_sync": LastingObject("settings of identity provider sync", Fate.REFUSED, _GRANTS),
    "password": LastingObject(
        "passwords", Fate.REFUSED, "its user signs in with it, and any other person who knows it"
    ),
    "webpush_subscription": LastingObject(
        "push subscriptions", Fate.REFUSED, "a browser's; it would keep receiving messages"
    ),
    "provisioner_key": LastingObject(
        "provisioner keys", Fate.REFUSED, "a daemon with the key receives templates, variables and states of builds"
    ),
    "workspace_proxy": LastingObject(
        "tokens of workspace proxies", Fate.REFUSED, "a proxy with the token reaches the agents of every visitor"
    ),
    "oauth2_provider_app": LastingObject(
        "settings of applications", Fate.REFUSED, "codes of other users would go to an address that it chose"
    ),
    "full_build_tokens": LastingObject(
        "templates whose builds get all roles of their owners", Fate.REFUSED, "later builds would act with site roles"
    ),
    "user": LastingObject("users", Fate.STAYS, _SHARED),
    "organization_member": LastingObject("memberships", Fate.STAYS, _SHARED),
    "workspace_acl": LastingObject("shared workspaces", Fate.STAYS, _SHARED),
    "template_acl": LastingObject("shared templates", Fate.STAYS, _SHARED),
    "port_share": LastingObject("shared ports", Fate.STAYS, "listed and revoked with the workspace's ports"),
    "workspace": LastingObject("workspaces", Fate.STAYS, "a user's own, with all its data"),
    "git_ssh_key": LastingObject("Git SSH keys", Fate.STAYS, _OWNED),
    "user_secret": LastingObject("secrets of users", Fate.STAYS, _OWNED),
}
