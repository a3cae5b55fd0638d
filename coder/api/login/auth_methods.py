"""JSON shapes of authentication methods, shared by server and client."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from coder.api.base.struct import ApiStruct


class GithubAuthMethod(ApiStruct):
    enabled: bool
    default_provider_configured: bool


class OIDCAuthMethod(ApiStruct):
    enabled: bool
    iconUrl: str
    signInText: str


class AuthMethod(ApiStruct):
    enabled: bool


class AuthMethods(ApiStruct):
    password: AuthMethod
    github: GithubAuthMethod
    oidc: OIDCAuthMethod
    terms_of_service_url: str | UnsetType = UNSET
