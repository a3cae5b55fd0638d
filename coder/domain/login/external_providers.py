"""Providers of external authentication (git hosts and others): their settings and the defaults of each kind. Pure.

Settings come as `CODER_EXTERNAL_AUTH_<n>_<FIELD>` or as the list `externalAuthProviders` of the YAML file. Endpoints of
the public hosts are facts of those hosts; a self-hosted service is configured by its URLs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from coder.base.json_types import Json, as_list
from coder.domain.foundation.patterns import PatternProblem, compiled

_PREFIX = "CODER_EXTERNAL_AUTH_"
_KEY = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9_.-]*[a-zA-Z0-9])?")


class ProviderProblem(ValueError):  # noqa: N818 - says what is wrong with the settings
    """Provider settings that cannot be used; the text names the setting and the required change."""


@dataclass(frozen=True, slots=True)
class ExternalProvider:
    """Provider with every default filled in."""

    id: str
    kind: str
    client_id: str
    client_secret: str = field(repr=False)
    auth_url: str = ""
    token_url: str = ""
    validate_url: str = ""
    revoke_url: str = ""
    device_code_url: str = ""
    device_flow: bool = False
    no_refresh: bool = False
    scopes: Sequence[str] = ()
    regex: str = ""
    display_name: str = ""
    display_icon: str = ""
    app_install_url: str = ""
    app_installations_url: str = ""
    pkce: bool = True

    @property
    def supports_revocation(self) -> bool:
        return bool(self.revoke_url)


@dataclass(frozen=True, slots=True)
class _Known:
    base: str
    name: str
    icon: str
    auth: str
    token: str
    validate: str = ""
    device: str = ""
    revoke: str = ""
    scopes: Sequence[str] = ()
    host: str = ""
    "Host of the repositories of the public service."
    self_hosted: bool = False
    "Whether the repositories of a self-hosted service are at the host of its AUTH_URL."
    pkce: bool = True
    installations: str = ""


_CUSTOM_ICON = "/emojis/1f511.png"
_KNOWN = {
    "github": _Known(
        "https://github.com",
        "GitHub",
        "/icon/github.svg",
        "/login/oauth/authorize",
        "/login/oauth/access_token",
        "https://api.github.com/user",
        "/login/device/code",
        scopes=("repo", "workflow"),
        host="github.com",
        self_hosted=True,
        installations="https://api.github.com/user/installations",
    ),
    "gitlab": _Known(
        "https://gitlab.com",
        "GitLab",
        "/icon/gitlab.svg",
        "/oauth/authorize",
        "/oauth/token",
        "/oauth/token/info",
        revoke="/oauth/revoke",
        scopes=("write_repository",),
        host="gitlab.com",
        self_hosted=True,
    ),
    "gitea": _Known(
        "https://gitea.com",
        "Gitea",
        "/icon/gitea.svg",
        "/login/oauth/authorize",
        "/login/oauth/access_token",
        "/login/oauth/userinfo",
        scopes=("read:repository", "write:repository", "read:user"),
        host="gitea.com",
        self_hosted=True,
    ),
    "bitbucket-cloud": _Known(
        "https://bitbucket.org",
        "BitBucket",
        "/icon/bitbucket.svg",
        "/site/oauth2/authorize",
        "/site/oauth2/access_token",
        "https://api.bitbucket.org/2.0/user",
        scopes=("account", "repository:write"),
        host="bitbucket.org",
        pkce=False,
    ),
    "bitbucket-server": _Known(
        "",
        "Bitbucket Server",
        "/icon/bitbucket.svg",
        "/rest/oauth2/latest/authorize",
        "/rest/oauth2/latest/token",
        "/rest/api/latest/inbox/pull-requests/count",
        scopes=("PUBLIC_REPOS", "REPO_READ", "REPO_WRITE"),
        self_hosted=True,
    ),
    "azure-devops": _Known(
        "https://app.vssps.visualstudio.com",
        "Azure DevOps",
        "/icon/azure-devops.svg",
        "/oauth2/authorize",
        "/oauth2/token",
        scopes=("vso.code_write",),
        host="dev.azure.com",
        pkce=False,
    ),
    "azure-devops-entra": _Known(
        "",
        "Azure DevOps (Entra)",
        "/icon/azure-devops.svg",
        "/oauth2/authorize",
        "/oauth2/token",
        host="dev.azure.com",
    ),
    "jfrog": _Known(
        "",
        "JFrog",
        "/icon/jfrog.svg",
        "/ui/authorization",
        "/access/api/v1/integrations/{id}/token",
        scopes=("applied-permissions/user",),
    ),
    "slack": _Known(
        "https://slack.com",
        "Slack",
        "/icon/slack.svg",
        "/oauth/v2/authorize",
        "/api/oauth.v2.access",
        scopes=("commands", "chat:write"),
        pkce=False,
    ),
}
_OWN_API = {"https://api.github.com": "/api/v3"}
"""Paths of a self-hosted service for APIs that the public service has on a separate host (GitHub Enterprise Server)."""
_USERNAMES = {"gitlab": "oauth2", "bitbucket-cloud": "x-token-auth", "bitbucket-server": "x-token-auth"}


def read_providers(env: Mapping[str, str], listed: Json) -> tuple[ExternalProvider, ...]:
    """Return all providers: those of the environment, then those of the file. Raises ProviderProblem."""
    raw = _from_environment(env) + [_lowered(item) for item in as_list(listed) if isinstance(item, Mapping)]
    providers = tuple(_provider(item) for item in raw)
    seen: set[str] = set()
    for provider in providers:
        if provider.id in seen:
            raise ProviderProblem(f"two external auth providers have the ID {provider.id!r}: change one")
        seen.add(provider.id)
    return providers


def _from_environment(env: Mapping[str, str]) -> list[dict[str, Json]]:
    numbered: dict[int, dict[str, Json]] = {}
    for name, value in env.items():
        if not name.startswith(_PREFIX):
            continue
        number, _, key = name.removeprefix(_PREFIX).partition("_")
        if number.isdecimal() and key:
            numbered.setdefault(int(number), {})[key.lower()] = value
    return [numbered[number] for number in sorted(numbered)]


def _lowered(item: Mapping[str, Json]) -> dict[str, Json]:
    """Normalize keys: `clientID` and `client_id` are one setting."""
    return {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(name)).lower(): value for name, value in item.items()}


def _provider(raw: Mapping[str, Json]) -> ExternalProvider:
    kind = str(raw.get("type") or "custom").lower()
    known = _KNOWN.get(kind)
    ident = str(raw.get("id") or kind)
    if not _KEY.fullmatch(ident):
        raise ProviderProblem(f"external auth provider {ident!r}: the ID must be letters, digits, dashes and dots")
    if not raw.get("client_id"):
        raise ProviderProblem(f"external auth provider {ident!r} has no CLIENT_ID")
    urls = {name: str(raw.get(name) or "") for name in ("auth_url", "token_url", "validate_url", "revoke_url")}
    device_url = str(raw.get("device_code_url") or "")
    if known is not None:
        base = _base(known, urls["auth_url"])
        for name, path in (
            ("auth_url", known.auth),
            ("token_url", known.token),
            ("validate_url", known.validate),
            ("revoke_url", known.revoke),
        ):
            urls[name] = urls[name] or _joined(base, path.replace("{id}", ident), known.base)
        device_url = device_url or _joined(base, known.device, known.base)
    device_flow = _is_true(raw.get("device_flow"))
    if not urls["auth_url"] and not device_flow:
        raise ProviderProblem(f"external auth provider {ident!r} of type {kind!r} needs an AUTH_URL")
    if not urls["token_url"]:
        raise ProviderProblem(f"external auth provider {ident!r} of type {kind!r} needs a TOKEN_URL")
    if device_flow and not device_url:
        raise ProviderProblem(f"external auth provider {ident!r} uses the device flow and needs a DEVICE_CODE_URL")
    return ExternalProvider(
        id=ident,
        kind=kind,
        client_id=str(raw["client_id"]),
        client_secret=str(raw.get("client_secret") or ""),
        device_code_url=device_url,
        device_flow=device_flow,
        no_refresh=_is_true(raw.get("no_refresh")),
        scopes=_words(raw.get("scopes")) or tuple(known.scopes if known else ()),
        regex=_regex(ident, raw, known, urls["auth_url"]),
        display_name=str(raw.get("display_name") or (known.name if known else kind)),
        display_icon=str(raw.get("display_icon") or (known.icon if known else _CUSTOM_ICON)),
        app_install_url=str(raw.get("app_install_url") or ""),
        app_installations_url=str(raw.get("app_installations_url") or _installations(known, urls["auth_url"])),
        pkce=_pkce(raw, known),
        **urls,
    )


def _installations(known: _Known | None, auth_url: str) -> str:
    return "" if known is None else _joined(_base(known, auth_url), known.installations, known.base)


def _base(known: _Known, auth_url: str) -> str:
    """Return the base URL of a provider; a self-hosted one is identified by its login address."""
    match = re.match(r"https?://[^/]+", auth_url)
    return known.base if not match else match[0]


def _joined(base: str, path: str, public: str) -> str:
    """Return an address of the provider at `base`. A token of a self-hosted service is never sent to the `public`
    one."""
    if not path.startswith("https://"):
        return base + path if base and path else ""
    if base == public:
        return path
    for public_path, own_path in _OWN_API.items():
        if path.startswith(public_path):
            return base + own_path + path.removeprefix(public_path)
    return ""


def _regex(ident: str, raw: Mapping[str, Json], known: _Known | None, auth_url: str) -> str:
    """Return the pattern of the repositories that a provider's tokens are given to git for."""
    text = str(raw.get("regex") or "")
    host = "" if text or known is None else _repository_host(known, auth_url)
    if host:
        text = rf"^(https?://)?{re.escape(host)}(/.*)?$"
    try:
        compiled(text)
    except PatternProblem as error:
        raise ProviderProblem(
            f"external auth provider {ident!r}: REGEX is not a regular expression: {error}"
        ) from error
    return text


def _repository_host(known: _Known, auth_url: str) -> str:
    """Return the host of a provider's repositories, with its port if any: a self-hosted service's own host."""
    own = urlsplit(auth_url).netloc.rpartition("@")[2].lower()
    return own if known.self_hosted and own else known.host


def _pkce(raw: Mapping[str, Json], known: _Known | None) -> bool:
    methods = raw.get("code_challenge_methods_supported")
    if methods is not None:
        return "S256" in _words(methods)
    return known.pkce if known is not None else True


def _words(value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part for part in re.split(r"[,\s]+", value) if part)
    return tuple(str(item) for item in as_list(value))


def _is_true(value: Json) -> bool:
    return value is True or str(value).lower() in {"1", "t", "true", "yes", "y", "on"}


def provider_for(providers: Sequence[ExternalProvider], *, ident: str = "", url: str = "") -> ExternalProvider | None:
    """Return the provider with that id, or the first whose pattern matches a repository's URL."""
    for provider in providers:
        if ident and provider.id == ident:
            return provider
        if url and provider.regex and compiled(provider.regex).search(url):
            return provider
    return None


def git_login(provider: ExternalProvider, token: str) -> tuple[str, str]:
    """Return (username, password) for git over HTTPS: hosts expect the token in different fields."""
    username = _USERNAMES.get(provider.kind)
    return (username, token) if username else (token, "")
