"""Settings of external providers: requirements of known hosts, and unusable settings."""

from __future__ import annotations

import pytest

from coder.base.json_types import JsonObject
from coder.domain.login.external_providers import _KNOWN, ProviderProblem, git_login, provider_for, read_providers


def settings(**fields: str) -> dict[str, str]:
    return {f"CODER_EXTERNAL_AUTH_0_{name.upper()}": value for name, value in fields.items()}


def test_known_hosts_need_no_addresses() -> None:
    (github,) = read_providers(settings(type="github", client_id="c", client_secret="s"), None)
    assert github.id == "github" and github.token_url == "https://github.com/login/oauth/access_token"
    assert provider_for([github], url="https://github.com/a/b") is github
    assert provider_for([github], url="https://github.community/a") is None
    assert "s" not in repr(github).split("client_secret")[-1][:4]
    own = settings(type="gitlab", client_id="c", auth_url="https://git.acme.com/oauth/authorize", id="acme")
    (gitlab,) = read_providers(own, None)
    assert gitlab.token_url == "https://git.acme.com/oauth/token"
    assert git_login(gitlab, "t") == ("oauth2", "t")


def test_file_and_environment_agree() -> None:
    listed: list[JsonObject] = [
        {"type": "github", "id": "hub", "clientID": "c", "clientSecret": "s", "deviceFlow": True}
    ]
    (listed_provider,) = read_providers({}, listed)
    (other,) = read_providers(
        settings(type="github", id="hub", client_id="c", client_secret="s", device_flow="true"), None
    )
    assert listed_provider == other and listed_provider.device_flow


@pytest.mark.parametrize(
    "wrong",
    [
        settings(type="github"),
        settings(id="a/b", client_id="c", auth_url="http://x", token_url="http://x"),
        settings(id="own", client_id="c"),
        settings(id="own", client_id="c", auth_url="http://x"),
        settings(id="own", client_id="c", auth_url="http://x", token_url="http://x", regex="("),
        {
            **settings(type="github", client_id="c"),
            "CODER_EXTERNAL_AUTH_1_TYPE": "github",
            "CODER_EXTERNAL_AUTH_1_CLIENT_ID": "d",
        },
    ],
)
def test_unusable_settings_are_explained(wrong: dict[str, str]) -> None:
    with pytest.raises(ProviderProblem, match="external auth provider"):
        read_providers(wrong, None)


@pytest.mark.parametrize(
    ("more", "url"),
    [
        ({}, "https://api.github.com/user/installations"),
        ({"auth_url": "https://git.example.com/login/a"}, "https://git.example.com/api/v3/user/installations"),
        ({"app_installations_url": "https://x/installations"}, "https://x/installations"),
    ],
)
def test_installations_endpoint(more: dict[str, str], url: str) -> None:
    (provider,) = read_providers(settings(type="github", client_id="c", **more), None)
    assert provider.app_installations_url == url


@pytest.mark.parametrize("kind", _KNOWN)
def test_self_hosted_token_stays_on_host(kind: str) -> None:
    own = "https://git.example.com"
    (provider,) = read_providers(settings(type=kind, client_id="c", auth_url=f"{own}/login/a"), None)
    urls = (
        provider.token_url,
        provider.validate_url,
        provider.revoke_url,
        provider.device_code_url,
        provider.app_installations_url,
    )
    assert [url for url in urls if url and not url.startswith(f"{own}/")] == []


PUBLIC = (
    "https://github.com/a",
    "https://gitlab.com/a",
    "https://gitea.com/a",
    "https://bitbucket.org/a",
    "https://dev.azure.com/a",
)


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea", "bitbucket-server"])
@pytest.mark.parametrize("own", ["git.example.com", "git.example.com:8443", "10.0.0.7", "[fd00::7]:8080"])
def test_pattern_follows_own_host(kind: str, own: str) -> None:
    urls = settings(type=kind, client_id="c", auth_url=f"https://{own.upper()}/login/authorize")
    (provider,) = read_providers(urls, None)
    for url in (f"https://{own}/a/b.git", f"{own}/a", f"http://{own}"):
        assert provider_for([provider], url=url) is provider, url
    strangers = (f"https://{own}.evil.example/a", f"https://evil.example/{own}", "https://gitXexample.com/a", *PUBLIC)
    for url in strangers:
        assert provider_for([provider], url=url) is None, url


@pytest.mark.parametrize("kind", _KNOWN)
def test_pattern_of_public_service(kind: str) -> None:
    """A token of a kind is never given for the host of another kind."""
    known = _KNOWN[kind]
    more = {} if known.base else {"auth_url": "https://login.example.com/a", "token_url": "https://login.example.com/t"}
    (provider,) = read_providers(settings(type=kind, client_id="c", **more), None)
    matched = [url for url in PUBLIC if provider_for([provider], url=url)]
    assert matched == [url for url in PUBLIC if known.host and known.host == url.split("/")[2]]


def test_pattern_of_settings_wins() -> None:
    own = settings(type="gitlab", client_id="c", auth_url="https://git.example.com/a", regex="^https://code.example/")
    (provider,) = read_providers(own, None)
    assert provider.regex == "^https://code.example/"
