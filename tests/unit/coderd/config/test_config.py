"""Settings are described truthfully: with effect, without effect, and in the API."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.config.checks import idle_connections
from coder.coderd.config.options import FORMER, OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.config.refused import REFUSED
from coder.coderd.config.setting import ServerOption, SettingGroup
from coder.coderd.config.settings import ServerConfig, effective_name
from coder.coderd.config.without_effect import HARMLESS, WITHOUT_EFFECT, ignored_settings
from tests.kit.paths import DATA, ROOT

SOURCES = ROOT / "coder"
RECORDED = DATA / "api" / "recorded" / "deployment-options.jsonl"
LEFT_OUT = re.compile("AI |Chat")
NOT_OURS = {"disable-chat-sharing"}
"""Groups besides `LEFT_OUT`: there are no chats."""
OTHER_DEFAULTS = {
    "telemetry": "nothing is ever sent, so the honest default is off",
    "update-check": "off unless an administrator enables it",
    "cache-dir": "recorded as a placeholder",
    "template-builder-registry-url": "templates contain their modules unless an administrator sets a registry",
}


def readers(names: set[str]) -> dict[str, set[str]]:
    """Return, by setting, the files that read it, without those that only declare or show all of them."""
    pattern = re.compile(r'\b_?config\.(\w+)|\["(\w+)"\]|\.(?:text|texts|flag)\("(\w+)"\)|"(log_\w+)"')
    results: dict[str, set[str]] = {name: set() for name in names}
    for folder in (SOURCES / "appproxy", SOURCES / "coderd", SOURCES / "cli"):
        for path in folder.rglob("*.py"):
            if path.parent.name == "config":
                continue
            for groups in pattern.findall(path.read_text()):
                for name in groups:
                    results.get(name, set()).add(path.name)
    return results


OTHER_VALUES = {
    "tls_client_auth": "request",
    "tls_client_ca_file": "/ca.pem",
    "samesite_auth_cookie": "none",
    "access_url": "https://coder.example",
    "wildcard_access_url": "*.coder.example",
    "template_builder_registry_url": "registry.example.com",
    "wireguard_endpoint": "vpn.example.com:51820",
    "postgres_auth": "awsiamrds",
    "prometheus_aggregate_agent_stats_by": "username",
    "postgres_conn_max_idle": "4",
    "web_terminal_renderer": "webgl",
    "support_links": "[]",
    "external_auth_providers": "[]",
    "ssh_config_options": "A=b",
    "oidc_organization_mapping": '{"a": ["2f3c0a1e-0000-4000-8000-000000000001"]}',
    "oidc_auth_url_params": "{}",
    "tls_enable": "false",
    "http_address": "127.0.0.1:1",
    "stun_address": "127.0.0.1:7",
    "default_quiet_hours_schedule": "CRON_TZ=Europe/Berlin 0 2 * * *",
}
"""Values for settings that do not take any text."""
_ISSUER, _CLIENT = {"oidc-issuer-url": "https://idp.example"}, {"oidc-client-id": "c"}
REQUIRED_BESIDE = {
    "oauth2_github_client_id": {"oauth2-github-allow-everyone": "true"},
    "oidc_client_id": _ISSUER,
    "oidc_client_secret": _ISSUER | _CLIENT,
    "oidc_client_key_file": _ISSUER | _CLIENT,
}
"""Flags without which a setting is refused."""


def another_value(option: ServerOption) -> str:
    """Return a value as a user would write it, and other than the default wherever there is a choice."""
    by_kind = {"bool": str(not option.default).lower(), "int": "7", "duration": "37m", "struct": '{"a": "b"}'}
    by_kind["host:port"] = "127.0.0.1:7"
    return OTHER_VALUES.get(option.name) or by_kind.get(option.kind, "something")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.flag)
def test_other_value_is_applied_or_refused(option: ServerOption) -> None:
    """Applied: it is in the configuration, under the name code reads (`test_only_listed_settings_…`)."""
    given = Inputs(flags={option.flag: another_value(option)})
    if option.name in REFUSED:
        with pytest.raises(CoderError, match=f"--{option.flag} is not supported: ") as caught:
            server_config(given, Path("/nowhere"))
        assert option.env in caught.value.hint
        return
    given = Inputs(flags={**given.flags, **REQUIRED_BESIDE.get(option.name, {})})
    config = server_config(given, Path("/nowhere"))
    name = FORMER.get(option.name, option.name)
    if name in ("config", "write_config", "external_auth_providers", "tls_enable"):
        return  # read by the command itself, or tested where they need more than one value
    value, default = getattr(config, name), getattr(server_config(Inputs(), Path("/nowhere")), name)
    shown = [item.reveal() if isinstance(item, Secret) else item for item in (value, default)]
    assert shown[0] != shown[1]
    if option.name in WITHOUT_EFFECT and option.name not in HARMLESS:
        assert config.resolved is not None and ignored_settings(config.resolved) == [f"--{option.flag}"]


def test_https_redirect_requires_tls() -> None:
    tls = {"tls-enable": "true", "tls-cert-file": "/cert", "tls-key-file": "/key"}
    asked = {"tls-redirect-http-to-https": "true"}
    for flags, redirects in (({}, False), (tls, False), (asked, False), (tls | asked, True)):
        assert server_config(Inputs(flags=flags), Path("/nowhere")).redirect_to_access_url is redirects


def test_idle_connections_are_at_most_open() -> None:
    assert [idle_connections(text) for text in ("auto", "0", "10")] == [None, 0, 10]
    for text in ("11", "many"):
        with pytest.raises(CoderError, match="--postgres-conn-max-idle"):
            server_config(Inputs(flags={"postgres-conn-max-idle": text}), Path("/nowhere"))


def test_only_listed_settings_lack_effect() -> None:
    names = {item.name for item in fields(ServerConfig)} - {"data_dir", "resolved"}
    read = readers(names)
    unread = {name for name in names if not read[name]} - {"tls_redirect_http_to_https"}  # see the test of redirects
    assert unread - WITHOUT_EFFECT.keys() - REFUSED.keys() == set()
    assert not {name for name in WITHOUT_EFFECT if read.get(name)}, "it has an effect now: take it off the list"
    assert WITHOUT_EFFECT.keys() >= HARMLESS and all(WITHOUT_EFFECT.values())


def test_ignored_settings_are_reported() -> None:
    given = Inputs(
        flags={"boundary-log-retention": "1h", "http-address": "127.0.0.1:0", "telemetry": "true"},
        env={"CODER_CLUSTER_HOST": "example.com", "CODER_PROMETHEUS_ADDRESS": "127.0.0.1:2112"},
    )
    config = server_config(given, Path("/nowhere"))
    assert config.resolved is not None
    assert ignored_settings(config.resolved) == ["--cluster-host", "--boundary-log-retention"]


def test_former_names_are_accepted() -> None:
    env = {
        "CODER_NOTIFICATIONS_EMAIL_FROM": "a@b.c",
        "CODER_NOTIFICATIONS_EMAIL_AUTH_PASSWORD": "pw",
        "CODER_ADDRESS": "127.0.0.1:1",
        "CODER_EMAIL_TLS_CACERTFILE": "/ca",
    }
    config = server_config(Inputs(env=env), Path("/nowhere"))
    assert (config.email_from, config.email_auth_password.reveal()) == ("a@b.c", "pw")
    assert (config.http_address, config.email_tls_ca_cert_file) == ("127.0.0.1:1", "/ca")
    assert config.resolved is not None
    assert ignored_settings(config.resolved) == []
    assert effective_name(config.resolved, "email_from") == "notifications_email_from"
    assert effective_name(config.resolved, "email_hello") == "email_hello"


def recorded_options() -> list[dict[str, Any]]:
    options = map(json.loads, RECORDED.read_text().splitlines())
    return [
        option
        for option in options
        if not LEFT_OUT.match(option.get("group", {}).get("name", "")) and option["flag"] not in NOT_OURS
    ]


def as_recorded(option: ServerOption) -> dict[str, Any]:
    """Return the option in the words of the recording."""
    titles = {other.flag: other.title for other in OPTIONS}
    results: dict[str, Any] = {
        "name": option.title,
        "flag": option.flag,
        "flag_shorthand": option.short,
        "env": option.env,
        "yaml": option.yaml.rsplit(".", 1)[-1],
        "default": option.shown_default,
        "hidden": option.hidden,
        "annotations": dict(option.annotations),
        "use_instead": [titles[flag] for flag in option.instead],
        "group": group(option.group_of),
    }
    return {name: value for name, value in results.items() if value}


def group(of: SettingGroup | None) -> dict[str, Any]:
    if of is None:
        return {}
    shown: dict[str, Any] = {"name": of.name} | ({"yaml": of.yaml} if of.yaml else {})
    return shown | ({"parent": group(of.parent)} if of.parent is not None else {})


@pytest.mark.parametrize("recorded", recorded_options(), ids=lambda option: str(option["flag"]))
def test_options_match_recorded(recorded: dict[str, Any]) -> None:
    ours = as_recorded({option.flag: option for option in OPTIONS}[recorded["flag"]])
    expected = {name: value for name, value in recorded.items() if name not in {"value_type", "value_sample"}}
    if recorded["flag"] in OTHER_DEFAULTS:
        ours.pop("default", None), expected.pop("default")
    assert ours == expected


def test_yaml_path_follows_groups() -> None:
    for option in OPTIONS:
        levels = [part.yaml for part in option.group_of.chain() if part.yaml] if option.group_of else []
        assert not option.yaml or option.yaml.split(".")[:-1] == levels, option.flag


@pytest.mark.parametrize("endpoint", ["vpn.example.com", "2001:db8::1:51820", "https://vpn.example.com:51820"])
def test_unusable_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(CoderError, match="WireGuard clients cannot connect") as caught:
        server_config(Inputs(env={"CODER_WIREGUARD_ENDPOINT": endpoint}), Path("/nowhere"))
    assert repr(endpoint) in caught.value.message and "--wireguard-endpoint" in caught.value.hint
    good = server_config(Inputs(flags={"wireguard-endpoint": "[2001:db8::1]:51820"}), Path("/nowhere"))
    assert good.wireguard_endpoint == "[2001:db8::1]:51820"
