"""Settings: OpenID Connect."""

from __future__ import annotations

from dataclasses import dataclass

from coder.base.json_types import Json
from coder.base.secret import Secret
from coder.coderd.config.groups import OIDC
from coder.coderd.config.setting import Regexp, Url, concern, setting


@concern(OIDC)
@dataclass(frozen=True, kw_only=True)
class OidcSettings:
    """Sign-in with OpenID Connect."""

    oidc_allow_signups: bool = setting(
        True,
        "OIDC Allow Signups",
        "Create an account for a user who signs in for the first time.",
        yaml="allowSignups",
        path="oidc.allow_signups",
    )
    oidc_client_id: str = setting(
        "",
        "OIDC Client ID",
        "Client id under which this server is known to the identity provider.",
        yaml="clientID",
        path="oidc.client_id",
    )
    oidc_client_secret: Secret = setting(
        Secret(""),
        "OIDC Client Secret",
        "Client secret with which this server authenticates at the identity provider.",
        path="oidc.client_secret",
    )
    oidc_client_key_file: str = setting(
        "",
        "OIDC Client Key File",
        "PEM file with the private key of --oidc-client-cert-file.",
        yaml="oidcClientKeyFile",
        path="oidc.client_key_file",
    )
    oidc_client_cert_file: str = setting(
        "",
        "OIDC Client Cert File",
        "PEM file with a certificate that authenticates this server at the identity provider instead of a secret.",
        yaml="oidcClientCertFile",
        path="oidc.client_cert_file",
    )
    oidc_email_domain: tuple[str, ...] = setting(
        (),
        "OIDC Email Domain",
        "Domains whose e-mail addresses may sign in, separated by commas; all if left out.",
        yaml="emailDomain",
        path="oidc.email_domain",
    )
    oidc_issuer_url: str = setting(
        "",
        "OIDC Issuer URL",
        "URL of the OpenID provider, like https://login.example.com.",
        yaml="issuerURL",
        path="oidc.issuer_url",
    )
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile", "email"),
        "OIDC Scopes",
        "Scopes requested from the identity provider, separated by commas.",
        yaml="scopes",
        path="oidc.scopes",
    )
    oidc_ignore_email_verified: bool = setting(
        False,
        "OIDC Ignore Email Verified",
        "Accept users whose e-mail address the provider has not verified.",
        yaml="ignoreEmailVerified",
        path="oidc.ignore_email_verified",
    )
    oidc_username_field: str = setting(
        "preferred_username",
        "OIDC Username Field",
        "Claim that new accounts get their user name from.",
        yaml="usernameField",
        path="oidc.username_field",
    )
    oidc_name_field: str = setting(
        "name",
        "OIDC Name Field",
        "Claim that accounts get the full name of a person from.",
        yaml="nameField",
        path="oidc.name_field",
    )
    oidc_email_field: str = setting(
        "email",
        "OIDC Email Field",
        "Claim with the e-mail address of a person.",
        yaml="emailField",
        path="oidc.email_field",
    )
    oidc_auth_url_params: Json = setting(
        '{"access_type": "offline"}',
        "OIDC Auth URL Parameters",
        "Parameters, as JSON, added to the address of the sign-in redirect.",
        yaml="authURLParams",
        path="oidc.auth_url_params",
    )
    oidc_ignore_userinfo: bool = setting(
        False,
        "OIDC Ignore UserInfo",
        "Read claims from the id token only, without the provider's userinfo.",
        yaml="ignoreUserInfo",
        path="oidc.ignore_user_info",
        shown="false",
    )
    oidc_group_field: str = setting(
        "",
        "OIDC Group Field",
        "Claim that lists the groups of a person; groups are not synced without it.",
        yaml="groupField",
        path="oidc.groups_field",
    )
    oidc_group_mapping: Json = setting(
        "{}",
        "OIDC Group Mapping",
        "JSON that maps names of groups at the provider to names of groups here.",
        yaml="groupMapping",
        path="oidc.group_mapping",
    )
    oidc_group_auto_create: bool = setting(
        False,
        "Enable OIDC Group Auto Create",
        "Create groups that the provider names and that are not here yet.",
        yaml="enableGroupAutoCreate",
        path="oidc.group_auto_create",
        shown="false",
    )
    oidc_group_regex_filter: Regexp = setting(
        ".*",
        "OIDC Regex Group Filter",
        "Take only groups of the provider whose name matches this expression.",
        yaml="groupRegexFilter",
        path="oidc.group_regex_filter",
    )
    oidc_allowed_groups: tuple[str, ...] = setting(
        (),
        "OIDC Allowed Groups",
        "Let only members of these provider groups sign in; all users if left out.",
        yaml="groupAllowed",
        path="oidc.group_allow_list",
    )
    oidc_user_role_field: str = setting(
        "",
        "OIDC User Role Field",
        "Claim that lists the roles of a person; roles are not synced without it.",
        yaml="userRoleField",
        path="oidc.user_role_field",
    )
    oidc_user_role_mapping: Json = setting(
        "{}",
        "OIDC User Role Mapping",
        "JSON that maps names of roles at the provider to lists of roles here.",
        yaml="userRoleMapping",
        path="oidc.user_role_mapping",
    )
    oidc_user_role_default: tuple[str, ...] = setting(
        (),
        "OIDC User Role Default",
        "Roles of every user who signs in through the provider, if --oidc-user-role-field is set.",
        yaml="userRoleDefault",
        path="oidc.user_roles_default",
    )
    oidc_organization_field: str = setting(
        "",
        "OIDC Organization Field",
        "Claim of organizations.",
        yaml="organizationField",
        path="oidc.organization_field",
        hidden=True,
    )
    oidc_organization_mapping: Json = setting(
        "{}",
        "OIDC Organization Sync Mapping",
        "Organizations there and here.",
        yaml="organizationMapping",
        path="oidc.organization_mapping",
        hidden=True,
    )
    oidc_organization_assign_default: bool = setting(
        True,
        "OIDC Assign Default Organization",
        "Add every user to the default organization.",
        yaml="organizationAssignDefault",
        path="oidc.organization_assign_default",
        hidden=True,
    )
    oidc_sign_in_text: str = setting(
        "OpenID Connect",
        "OpenID Connect sign in text",
        "Text of the button that leads to the provider.",
        yaml="signInText",
        path="oidc.sign_in_text",
    )
    oidc_icon_url: Url = setting(
        "",
        "OpenID connect icon URL",
        "URL of the icon on the button that leads to the provider.",
        yaml="iconURL",
        path="oidc.icon_url",
    )
    oidc_signups_disabled_text: str = setting(
        "",
        "Signups disabled text",
        "Message for users who would need a new account while sign-ups are disabled.",
        yaml="signupsDisabledText",
        path="oidc.signups_disabled_text",
    )
    oidc_redirect_url: str = setting(
        "",
        "OIDC Redirect URL",
        "Redirect address for the provider, if it is not the access URL.",
        yaml="oidc-redirect-url",
        path="oidc.redirect_url",
        hidden=True,
    )
    oidc_redirect_allowed_hosts: tuple[str, ...] = setting(
        (),
        "OIDC Redirect Allowed Hosts",
        "Refused: the provider redirects to the access URL, or to oidc-redirect-url.",
        yaml="oidcRedirectAllowedHosts",
        path="oidc.redirect_allowed_hosts",
        hidden=True,
    )
    oidc_repair_links: bool = setting(
        True,
        "OIDC Auto Repair Links",
        "Without effect: links are by issuer and subject.",
        yaml="oidc-repair-links",
        path="oidc.auto_repair_links",
        hidden=True,
    )
    oidc_access_token_claims: bool = setting(
        False,
        "OIDC Access Token Claims",
        "Take claims from the access token, a JWT, instead of the user info.",
        yaml="accessTokenClaims",
        path="oidc.source_user_info_from_access_token",
        hidden=True,
        shown="false",
    )
    dangerous_oidc_email_fallback: bool = setting(
        False,
        "OIDC Insecure Email Fallback (DANGEROUS)",
        "Refused: an address alone never opens an account that is linked to another login.",
        yaml="dangerousOidcEmailFallback",
        path="oidc.email_fallback",
        hidden=True,
    )
    dangerous_oidc_skip_issuer_checks: bool = setting(
        False,
        "Skip OIDC issuer checks (not recommended)",
        "Do not compare the issuer that tokens name with the configured one, which is dangerous.",
        yaml="dangerousSkipIssuerChecks",
        path="oidc.skip_issuer_checks",
    )
