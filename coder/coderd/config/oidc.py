"""Settings: OpenID Connect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coder.base.secret import Secret
from coder.coderd.config.groups import OIDC
from coder.coderd.config.setting import Regexp, Url, concern, setting


# fmt: off
@concern(OIDC)
@dataclass(frozen=True, kw_only=True)
class OidcConfig:
    """Signing in with OpenID Connect."""

    oidc_allow_signups: bool = setting(True, "OIDC Allow Signups", "Let new users sign up.", yaml="allowSignups", path="oidc.allow_signups")
    oidc_client_id: str = setting("", "OIDC Client ID", "Client id.", yaml="clientID", path="oidc.client_id")
    oidc_client_secret: Secret = setting(Secret(""), "OIDC Client Secret", "Client secret.", path="oidc.client_secret")
    oidc_client_key_file: str = setting("", "OIDC Client Key File", "Refused: this server proves itself by a client secret.", yaml="oidcClientKeyFile", path="oidc.client_key_file")
    oidc_client_cert_file: str = setting("", "OIDC Client Cert File", "Refused: this server proves itself by a client secret.", yaml="oidcClientCertFile", path="oidc.client_cert_file")
    oidc_email_domain: tuple[str, ...] = setting((), "OIDC Email Domain", "E-mail domains that may log in.", yaml="emailDomain", path="oidc.email_domain")
    oidc_issuer_url: str = setting("", "OIDC Issuer URL", "The identity provider.", yaml="issuerURL", path="oidc.issuer_url")
    oidc_scopes: tuple[str, ...] = setting(("openid", "profile", "email"), "OIDC Scopes", "Scopes asked for.", yaml="scopes", path="oidc.scopes")
    oidc_ignore_email_verified: bool = setting(False, "OIDC Ignore Email Verified", "Accept unverified e-mail addresses.", yaml="ignoreEmailVerified", path="oidc.ignore_email_verified")
    oidc_username_field: str = setting("preferred_username", "OIDC Username Field", "Claim of the username.", yaml="usernameField", path="oidc.username_field")
    oidc_name_field: str = setting("name", "OIDC Name Field", "Claim of the full name.", yaml="nameField", path="oidc.name_field")
    oidc_email_field: str = setting("email", "OIDC Email Field", "Claim of the e-mail address.", yaml="emailField", path="oidc.email_field")
    oidc_auth_url_params: Any = setting('{"access_type": "offline"}', "OIDC Auth URL Parameters", "Parameters added to the login URL.", yaml="authURLParams", path="oidc.auth_url_params")
    oidc_ignore_userinfo: bool = setting(False, "OIDC Ignore UserInfo", "Use the claims of the id token only.", yaml="ignoreUserInfo", path="oidc.ignore_user_info", shown="false")
    oidc_group_field: str = setting("", "OIDC Group Field", "Claim of groups.", yaml="groupField", path="oidc.groups_field")
    oidc_group_mapping: Any = setting("{}", "OIDC Group Mapping", "Names of groups there and here.", yaml="groupMapping", path="oidc.group_mapping")
    oidc_group_auto_create: bool = setting(False, "Enable OIDC Group Auto Create", "Create groups that are missing.", yaml="enableGroupAutoCreate", path="oidc.group_auto_create", shown="false")
    oidc_group_regex_filter: Regexp = setting(".*", "OIDC Regex Group Filter", "Only groups matching this.", yaml="groupRegexFilter", path="oidc.group_regex_filter")
    oidc_allowed_groups: tuple[str, ...] = setting((), "OIDC Allowed Groups", "Only members of these groups may log in.", yaml="groupAllowed", path="oidc.group_allow_list")
    oidc_user_role_field: str = setting("", "OIDC User Role Field", "Claim of site roles.", yaml="userRoleField", path="oidc.user_role_field")
    oidc_user_role_mapping: Any = setting("{}", "OIDC User Role Mapping", "Names of roles there and here.", yaml="userRoleMapping", path="oidc.user_role_mapping")
    oidc_user_role_default: tuple[str, ...] = setting((), "OIDC User Role Default", "Roles everybody gets who comes in that way, when --oidc-user-role-field is given.", yaml="userRoleDefault", path="oidc.user_roles_default")
    oidc_organization_field: str = setting("", "OIDC Organization Field", "Claim of organizations.", yaml="organizationField", path="oidc.organization_field", hidden=True)
    oidc_organization_mapping: Any = setting("{}", "OIDC Organization Sync Mapping", "Organizations there and here.", yaml="organizationMapping", path="oidc.organization_mapping", hidden=True)
    oidc_organization_assign_default: bool = setting(True, "OIDC Assign Default Organization", "Put everybody into the default organization.", yaml="organizationAssignDefault", path="oidc.organization_assign_default", hidden=True)
    oidc_sign_in_text: str = setting("OpenID Connect", "OpenID Connect sign in text", "Text of the login button.", yaml="signInText", path="oidc.sign_in_text")
    oidc_icon_url: Url = setting("", "OpenID connect icon URL", "Icon of the login button.", yaml="iconURL", path="oidc.icon_url")
    oidc_signups_disabled_text: str = setting("", "Signups disabled text", "Shown when signups are off.", yaml="signupsDisabledText", path="oidc.signups_disabled_text")
    oidc_redirect_url: str = setting("", "OIDC Redirect URL", "Where the provider sends people back to, when not the access URL.", yaml="oidc-redirect-url", path="oidc.redirect_url", hidden=True)
    oidc_redirect_allowed_hosts: tuple[str, ...] = setting((), "OIDC Redirect Allowed Hosts", "Refused: people come back to the access URL, or to oidc-redirect-url.", yaml="oidcRedirectAllowedHosts", path="oidc.redirect_allowed_hosts", hidden=True)
    oidc_repair_links: bool = setting(True, "OIDC Auto Repair Links", "Without effect: links are by issuer and subject.", yaml="oidc-repair-links", path="oidc.auto_repair_links", hidden=True)
    oidc_access_token_claims: bool = setting(False, "OIDC Access Token Claims", "Take claims from the access token, a JWT, instead of the user info.", yaml="accessTokenClaims", path="oidc.source_user_info_from_access_token", hidden=True, shown="false")
    dangerous_oidc_email_fallback: bool = setting(False, "OIDC Insecure Email Fallback (DANGEROUS)", "Refused: an address alone never opens an account that is linked to another login.", yaml="dangerousOidcEmailFallback", path="oidc.email_fallback", hidden=True)
    dangerous_oidc_skip_issuer_checks: bool = setting(False, "Skip OIDC issuer checks (not recommended)", "Do not compare the issuer.", yaml="dangerousSkipIssuerChecks", path="oidc.skip_issuer_checks")
