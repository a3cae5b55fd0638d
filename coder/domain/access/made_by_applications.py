"""What an OAuth2 application makes by its user's consent and leaves behind: which of it ends with the consent.

Whoever takes a consent back means all the application could do by it. What goes on to give access is a key, and ends;
or it cannot end so, and no application may make it; or it is a change of what belongs to the site, an organization or a
workspace, as the person makes them: it stays, and the audit log says who made it, and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fate(Enum):
    """Of one kind of what an application makes."""

    ENDS = "with the consent"
    REFUSED = "no application may make it"
    STAYS = "and is in the audit log"


@dataclass(frozen=True, slots=True)
class Lasting:
    """One kind."""

    what: str
    "As a refusal names it, in the plural."
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
