"""JSON shapes of oauth2, shared by server and client."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from coder.api.base.enums import LoginType
from coder.api.base.struct import ApiStruct
from coder.base.json_types import Json

OAuth2ErrorCode = Literal[
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "unsupported_token_type",
]

OAuth2PKCECodeChallengeMethod = Literal["plain", "S256"]

OAuth2ProviderGrantType = Literal["authorization_code", "client_credentials", "implicit", "password", "refresh_token"]

OAuth2ProviderResponseType = Literal["code", "token"]

OAuth2TokenEndpointAuthMethod = Literal["client_secret_basic", "client_secret_post", "none"]

OAuth2TokenType = Literal["Bearer", "DPoP"]


class GroupSyncSettings(ApiStruct):
    field: str
    mapping: dict[str, list[str]] | None
    regex_filter: str | None
    auto_create_missing_groups: bool
    legacy_group_name_mapping: Json | UnsetType = UNSET


class OAuth2AppEndpoints(ApiStruct):
    authorization: str
    token: str
    token_revoke: str
    device_authorization: str


class OAuth2AuthorizationServerMetadata(ApiStruct):
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    response_types_supported: list[OAuth2ProviderResponseType]
    code_challenge_methods_supported: list[OAuth2PKCECodeChallengeMethod] | UnsetType = UNSET
    grant_types_supported: list[OAuth2ProviderGrantType] | UnsetType = UNSET
    registration_endpoint: str | UnsetType = UNSET
    revocation_endpoint: str | UnsetType = UNSET
    scopes_supported: list[str] | UnsetType = UNSET
    token_endpoint_auth_methods_supported: list[OAuth2TokenEndpointAuthMethod] | UnsetType = UNSET


class OAuth2ClientConfiguration(ApiStruct):
    client_id: str
    client_id_issued_at: int
    grant_types: list[OAuth2ProviderGrantType]
    response_types: list[OAuth2ProviderResponseType]
    token_endpoint_auth_method: OAuth2TokenEndpointAuthMethod
    registration_client_uri: str
    client_name: str | UnsetType = UNSET
    client_secret_expires_at: int | UnsetType = UNSET
    client_uri: str | UnsetType = UNSET
    contacts: list[str] | UnsetType = UNSET
    jwks: Json | UnsetType = UNSET
    jwks_uri: str | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    policy_uri: str | UnsetType = UNSET
    redirect_uris: list[str] | UnsetType = UNSET
    registration_access_token: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    software_id: UUID | UnsetType = UNSET
    software_version: str | UnsetType = UNSET
    tos_uri: str | UnsetType = UNSET


class OAuth2ClientRegistrationResponse(ApiStruct):
    client_id: str
    grant_types: list[OAuth2ProviderGrantType]
    response_types: list[OAuth2ProviderResponseType]
    token_endpoint_auth_method: OAuth2TokenEndpointAuthMethod
    registration_access_token: str
    registration_client_uri: str
    client_id_issued_at: int | UnsetType = UNSET
    client_name: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET
    client_secret_expires_at: int | UnsetType = UNSET
    client_uri: str | UnsetType = UNSET
    contacts: list[str] | UnsetType = UNSET
    jwks: Json | UnsetType = UNSET
    jwks_uri: str | UnsetType = UNSET
    logo_uri: str | UnsetType = UNSET
    policy_uri: str | UnsetType = UNSET
    redirect_uris: list[str] | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    software_id: UUID | UnsetType = UNSET
    software_version: str | UnsetType = UNSET
    tos_uri: str | UnsetType = UNSET


class OAuth2DeviceFlowCallbackResponse(ApiStruct):
    redirect_url: str


class OAuth2Error(ApiStruct):
    error: OAuth2ErrorCode
    error_description: str | UnsetType = UNSET
    error_uri: str | UnsetType = UNSET


class OAuth2LegacyClient(ApiStruct):
    """Whether an application may sign users in without PKCE (ours)."""

    legacy: bool


class OAuth2ProtectedResourceMetadata(ApiStruct):
    resource: str
    authorization_servers: list[str]
    bearer_methods_supported: list[str] | UnsetType = UNSET
    scopes_supported: list[str] | UnsetType = UNSET


class OAuth2ProviderApp(ApiStruct):
    id: UUID
    name: str
    callback_url: str
    icon: str
    endpoints: OAuth2AppEndpoints
    last_used: datetime | UnsetType = UNSET
    """Last use of its keys of the user whose consents are listed; absent elsewhere. Ours."""


class OAuth2ProviderAppSecret(ApiStruct):
    id: UUID
    last_used_at: datetime | None
    client_secret_truncated: str


class OAuth2ProviderAppSecretFull(ApiStruct):
    id: UUID
    client_secret_full: str


class OAuth2ProviderSettings(ApiStruct):
    dynamic_client_registration_enabled: bool | UnsetType = UNSET


class OAuth2TokenResponse(ApiStruct):
    access_token: str
    token_type: OAuth2TokenType
    expires_in: int | UnsetType = UNSET
    expiry: str | UnsetType = UNSET
    refresh_token: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET


class OAuthConversionResponse(ApiStruct):
    state_string: str
    expires_at: datetime
    to_type: LoginType
    user_id: UUID


class OIDCClaimsResponse(ApiStruct):
    claims: dict[str, Json]


class OrganizationSyncSettings(ApiStruct):
    field: str
    mapping: dict[str, list[str]] | None
    organization_assign_default: bool


class PatchGroupIDPSyncConfigRequest(ApiStruct):
    field: str
    regex_filter: str | None
    auto_create_missing_groups: bool


class PatchOrganizationIDPSyncConfigRequest(ApiStruct):
    field: str
    assign_default: bool


class PatchRoleIDPSyncConfigRequest(ApiStruct):
    field: str


class PostOAuth2ProviderAppRequest(ApiStruct):
    name: str
    callback_url: str
    icon: str


class PutOAuth2ProviderAppRequest(ApiStruct):
    name: str
    callback_url: str
    icon: str


class RoleSyncSettings(ApiStruct):
    field: str
    mapping: dict[str, list[str]] | None
