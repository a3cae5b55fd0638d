"""JSON shapes of external auth, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json


class DeleteExternalAuthByIDResponse(ApiStruct):
    token_revoked: bool
    token_revocation_error: str | UnsetType = UNSET


class ExternalAuthUser(ApiStruct):
    id: int
    login: str
    avatar_url: str
    profile_url: str
    name: str


class ExternalAuthAppInstallation(ApiStruct):
    id: int
    account: ExternalAuthUser
    configure_url: str


class ExternalAuth(ApiStruct):
    authenticated: bool
    device: bool
    display_name: str
    supports_revocation: bool
    user: ExternalAuthUser | None
    app_installable: bool
    installations: list[ExternalAuthAppInstallation]
    app_install_url: str


class ExternalAuthConfig(ApiStruct):
    type: str
    client_id: str
    id: str
    auth_url: str
    token_url: str
    validate_url: str
    redirect_url: str
    revoke_url: str
    app_install_url: str
    app_installations_url: str
    no_refresh: bool
    scopes: list[str]
    device_flow: bool
    device_code_url: str
    mcp_url: str
    mcp_tool_allow_regex: str
    mcp_tool_deny_regex: str
    regex: str
    api_base_url: str
    display_name: str
    display_icon: str
    code_challenge_methods_supported: list[str]


class ExternalAuthDevice(ApiStruct):
    device_code: str
    user_code: str
    verification_uri: str
    expires_in: int
    interval: int


class ExternalAuthDeviceExchange(ApiStruct):
    device_code: str


class AgentAuth(ApiStruct):
    """Response for git's askpass in a workspace; `url` alone where the owner must sign in first."""

    access_token: str
    token_extra: Json
    url: str
    type: str
    username: str
    password: str
    expires_at: datetime | UnsetType = UNSET


class AgentGitSSHKey(ApiStruct):
    """The owner's key, lent to git in the owner's workspace."""

    public_key: str
    private_key: str


class ExternalAuthLink(ApiStruct):
    provider_id: str
    created_at: datetime
    updated_at: datetime
    has_refresh_token: bool
    expires: datetime
    authenticated: bool
    validate_error: str


class ExternalAuthLinkProvider(ApiStruct):
    id: str
    type: str
    device: bool
    display_name: str
    display_icon: str
    allow_refresh: bool
    allow_validate: bool
    supports_revocation: bool
    code_challenge_methods_supported: list[str]


class GitSSHKey(ApiStruct):
    user_id: UUID
    created_at: datetime
    updated_at: datetime
    public_key: str


class ListUserExternalAuthResponse(ApiStruct):
    providers: list[ExternalAuthLinkProvider]
    links: list[ExternalAuthLink]


class TemplateVersionExternalAuth(ApiStruct):
    id: str
    type: str
    display_name: str
    display_icon: str
    authenticate_url: str
    authenticated: bool
    optional: bool | UnsetType = UNSET
