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

    ENDS = "with the consent"
    REFUSED = "no application may make it"
    STAYS = "and is in the audit log"


@dataclass(frozen=True, slots=True)
class Lasting:
    """A kind of object that an application can create."""

    what: str
    """Name in a refusal, in the plural."""
    fate: Fate
    why: str


_SHARED = "it belongs to others, too, who rely on it"
_OWNED = "it belongs to whoever holds it, and gives nobody access here"

LASTING = {
    "api_key": Lasting("keys", Fate.ENDS, "it is the application's token by another name"),
    "provisioner_daemon": Lasting("provisioners", Fate.ENDS, "their links end with the key they came with"),
    "consent": Lasting("consents", Fate.REFUSED, "another application would go on with what this one agreed to"),
    "wireguard_client": Lasting("WireGuard devices", Fate.REFUSED, "a key pair that no consent is known of"),
    "webpush_subscription": Lasting("push subscriptions", Fate.REFUSED, "a browser's; it would go on being told"),
    "provisioner_key": Lasting("provisioner keys", Fate.STAYS, _SHARED),
    "workspace_proxy": Lasting("tokens of workspace proxies", Fate.STAYS, _SHARED),
    "oauth2_provider_app_secret": Lasting("secrets of applications", Fate.STAYS, _SHARED),
    "user": Lasting("users", Fate.STAYS, _SHARED),
    "password": Lasting("others' passwords", Fate.STAYS, "one's own asks for the old one; others' shut them out"),
    "organization_member": Lasting("memberships", Fate.STAYS, _SHARED),
    "workspace_acl": Lasting("shared workspaces", Fate.STAYS, _SHARED),
    "template_acl": Lasting("shared templates", Fate.STAYS, _SHARED),
    "port_share": Lasting("shared ports", Fate.STAYS, "shown beside the workspace's ports, where they are taken back"),
    "workspace": Lasting("workspaces", Fate.STAYS, "a person's own, with all the data they have there"),
    "git_ssh_key": Lasting("Git SSH keys", Fate.STAYS, _OWNED),
    "user_secret": Lasting("secrets of users", Fate.STAYS, _OWNED),
}
