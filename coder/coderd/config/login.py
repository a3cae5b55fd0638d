"""Settings: sessions, GitHub, SCIM, external logins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.base.secret import Secret
from coder.coderd.config.groups import GENERAL, GITHUB, HTTP
from coder.coderd.config.setting import concern, setting


@concern(HTTP)
@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """Lifetimes of sessions and tokens."""

    disable_password_auth: bool = setting(
        False,
        "Disable Password Authentication",
        "Refuse password logins (owners excepted).",
        yaml="disablePasswordAuth",
        path="disable_password_auth?",
    )
    disable_session_expiry_refresh: bool = setting(
        False,
        "Disable Session Expiry Refresh",
        "Let sessions end after their lifetime also while they are in use.",
        yaml="disableSessionExpiryRefresh",
        path="session_lifetime.disable_expiry_refresh?",
    )
    session_duration: timedelta = setting(
        timedelta(hours=24),
        "Session Duration",
        "Time after which an unused browser session expires, such as 24h.",
        yaml="sessionDuration",
        path="session_lifetime.default_duration",
    )
    max_token_lifetime: timedelta = setting(
        timedelta(hours=876600),
        "Max Token Lifetime",
        "Maximum lifetime of an API token.",
        yaml="maxTokenLifetime",
        path="session_lifetime.max_token_lifetime",
    )
    max_admin_token_lifetime: timedelta = setting(
        timedelta(days=7),
        "Maximum Admin Token Lifetime",
        "Maximum lifetime of an owner's API token.",
        yaml="maxAdminTokenLifetime",
        path="session_lifetime.max_admin_token_lifetime",
    )
    default_token_lifetime: timedelta = setting(
        timedelta(days=7),
        "Default Token Lifetime",
        "Default lifetime of an API token.",
        group=GENERAL,
        yaml="defaultTokenLifetime",
        path="session_lifetime.default_token_lifetime",
    )
    default_oauth_refresh_lifetime: timedelta = setting(
        timedelta(hours=720),
        "Default OAuth Refresh Lifetime",
        "Lifetime of refresh tokens of OAuth2 applications.",
        group=GENERAL,
        yaml="defaultOAuthRefreshLifetime",
        path="session_lifetime.refresh_default_duration",
    )


@concern(GITHUB)
@dataclass(frozen=True, kw_only=True)
class GithubSettings:
    """Sign-in with GitHub."""

    oauth2_github_client_id: str = setting(
        "",
        "OAuth2 GitHub Client ID",
        "Client id of the GitHub application for sign-in.",
        yaml="clientID",
        path="oauth2.github.client_id",
    )
    oauth2_github_client_secret: Secret = setting(
        Secret(""),
        "OAuth2 GitHub Client Secret",
        "Client secret of the GitHub application for sign-in.",
        path="oauth2.github.client_secret",
    )
    oauth2_github_device_flow: bool = setting(
        False,
        "OAuth2 GitHub Device Flow",
        "Let users enter a code at GitHub instead of redirecting them (device flow).",
        yaml="deviceFlow",
        path="oauth2.github.device_flow",
        shown="false",
    )
    oauth2_github_default_provider_enable: bool = setting(
        True,
        "OAuth2 GitHub Default Provider Enable",
        "Without effect: there is no default application to offer.",
        yaml="defaultProviderEnable",
        path="oauth2.github.default_provider_enable",
    )
    oauth2_github_allowed_orgs: tuple[str, ...] = setting(
        (),
        "OAuth2 GitHub Allowed Orgs",
        "GitHub organizations whose members may sign in, separated by commas.",
        yaml="allowedOrgs",
        path="oauth2.github.allowed_orgs",
    )
    oauth2_github_allowed_teams: tuple[str, ...] = setting(
        (),
        "OAuth2 GitHub Allowed Teams",
        "GitHub teams whose members may sign in, as org/team, separated by commas.",
        yaml="allowedTeams",
        path="oauth2.github.allowed_teams",
    )
    oauth2_github_allow_signups: bool = setting(
        False,
        "OAuth2 GitHub Allow Signups",
        "Create an account for a user who signs in for the first time.",
        yaml="allowSignups",
        path="oauth2.github.allow_signups",
    )
    oauth2_github_allow_everyone: bool = setting(
        False,
        "OAuth2 GitHub Allow Everyone",
        "Let every GitHub user sign in, from any organization.",
        yaml="allowEveryone",
        path="oauth2.github.allow_everyone",
    )
    oauth2_github_enterprise_base_url: str = setting(
        "",
        "OAuth2 GitHub Enterprise Base URL",
        "Base URL of a GitHub Enterprise server to use instead of github.com.",
        yaml="enterpriseBaseURL",
        path="oauth2.github.enterprise_base_url",
    )


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class ExternalAuthSettings:
    """External providers that workspaces need."""

    external_auth_github_default_provider_enable: bool = setting(
        True,
        "External Auth GitHub Default Provider Enable",
        "Without effect: there is no default application.",
        yaml="externalAuthGithubDefaultProviderEnable",
        path="external_auth_github_default_provider_enable?",
    )


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class ScimSettings:
    """Users by SCIM."""

    scim_auth_header: Secret = setting(
        Secret(""),
        "SCIM API Key",
        "Secret that an identity system sends to create and suspend accounts by SCIM.",
        enterprise=True,
    )
    scim_use_legacy: bool = setting(
        True,
        "SCIM Use Legacy",
        "Only true: there is one SCIM API, which behaves like the legacy one.",
        yaml="scimUseLegacy",
        path="scim_use_legacy",
        enterprise=True,
    )
