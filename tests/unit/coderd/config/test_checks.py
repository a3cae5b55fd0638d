"""Contradictory or unusable settings are refused before the server starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.coderd.config.checks import MAPPINGS, check_config
from coder.coderd.config.reading import server_config
from coder.coderd.config.settings import ServerConfig, struct_value

AN_ID = "2f3c0a1e-0000-4000-8000-000000000001"


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize(
    "value", ["", "{}", '{"a": []}', f'{{"a": ["{AN_ID}"]}}', {"a": [AN_ID]}, {}, None, "null", '{"a": null}']
)
def test_word_mappings(name: str, value: Any) -> None:
    check_config(ServerConfig(**{name: value}))


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("value", ["{", '"a"', '{"a": 1}', '{"a": [1]}', '{"a": {"b": "c"}}', "1"])
def test_invalid_mapping_is_refused(name: str, value: Any) -> None:
    with pytest.raises(CoderError, match=f"--{name.replace('_', '-')} does not map"):
        check_config(ServerConfig(**{name: value}))


@pytest.mark.parametrize("value", ['{"a": "engineering"}', '{"a": ["engineering"]}'])
def test_organizations_are_named_by_id(value: str) -> None:
    """Otherwise the first login with that word would get an internal error."""
    with pytest.raises(CoderError, match="id of an organization"):
        check_config(ServerConfig(oidc_organization_mapping=value))
    check_config(ServerConfig(oidc_group_mapping=value, oidc_user_role_mapping=value))


@pytest.mark.parametrize("most", [0, -1])
def test_a_server_needs_a_connection(most: int) -> None:
    """A pool of none would be unlimited."""
    with pytest.raises(CoderError, match="--postgres-conn-max-open"):
        check_config(ServerConfig(postgres_conn_max_open=most))
    check_config(ServerConfig(postgres_conn_max_open=1))


USED_LATER = [
    ("email_smarthost", "mail:abc"),
    ("email_smarthost", "mail:99999"),
    ("email_smarthost", "::1:25"),
    ("email_smarthost", ":25"),
    ("email_smarthost", "mail:0"),
    ("email_smarthost", "mail server"),
    ("email_smarthost", "smtp://mail:25"),
    ("email_smarthost", "mail:" + "9" * 5000),
    ("stun_address", "[x]:3478"),
    ("stun_address", "x"),
    ("stun_address", "0.0.0.0:stun"),
    ("default_quiet_hours_schedule", "nonsense"),
    ("default_quiet_hours_schedule", "CRON_TZ=Moon/Base 0 2 * * *"),
]


@pytest.mark.parametrize(("name", "value"), USED_LATER)
def test_values_used_later_are_checked(name: str, value: str) -> None:
    with pytest.raises(CoderError, match=f"--{name.replace('_', '-')}: ") as refused:
        check_config(ServerConfig(**{name: value}))  # type: ignore[arg-type]
    assert refused.value.hint.startswith("Write")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("email_smarthost", "mail"),
        ("email_smarthost", "[::1]:25"),
        ("email_smarthost", "[::1]"),
        ("email_smarthost", "mail.example.com:465"),
        ("stun_address", ":3478"),
        ("stun_address", "127.0.0.1:0"),
        ("default_quiet_hours_schedule", "CRON_TZ=Europe/Berlin 0 2 * * *"),
    ],
)
def test_usable_values_pass(name: str, value: str) -> None:
    check_config(ServerConfig(**{name: value}))  # type: ignore[arg-type]


HALF_PROVIDERS: list[tuple[dict[str, Any], str]] = [
    ({"oidc_client_id": "c"}, "issuer URL must be set"),
    ({"oidc_client_id": "c", "oidc_client_secret": Secret("s")}, "issuer URL must be set"),
    ({"oidc_client_secret": Secret("s"), "oidc_issuer_url": "https://idp"}, "client ID must be set"),
    ({"oidc_client_key_file": "/k", "oidc_issuer_url": "https://idp"}, "client ID must be set"),
    ({"oidc_client_id": "c", "oidc_issuer_url": "idp.example.com"}, "is not a URL"),
]


@pytest.mark.parametrize(("settings", "problem"), HALF_PROVIDERS)
def test_half_provider_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(CoderError, match=problem):
        check_config(ServerConfig(**settings))
    check_config(ServerConfig(oidc_client_id="c", oidc_client_secret=Secret("s"), oidc_issuer_url="https://idp/x"))


LINK = '{"name": "Wiki", "target": "https://wiki.example.com"}'


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("support-links", "["),
        ("support-links", "1"),
        ("support-links", '{"name": "Wiki"}'),
        ("support-links", "[1]"),
        ("support-links", '[{"target": "https://wiki.example.com"}]'),
        ("support-links", '[{"name": "Wiki", "target": 1}]'),
        ("support-links", '[{"name": "Wiki", "target": "https://wiki.example.com", "icon": 1}]'),
        ("oidc-auth-url-params", "{"),
        ("oidc-auth-url-params", "[1]"),
        ("external-auth-providers", "["),
        ("external-auth-providers", "1"),
        ("external-auth-providers", '{"id": "github"}'),
        ("ssh-config-options", "ForwardX11"),
        ("ssh-config-options", "=yes"),
        ("ssh-config-options", "ForwardX11="),
        ("ssh-config-options", "ForwardX11 ="),
        ("ssh-config-options", "ForwardX11 yes\nHost *"),
    ],
)
def test_public_values_are_checked_at_start(flag: str, value: str) -> None:
    """Otherwise the sign-in page, or each requesting client, would get an internal error."""
    for inputs in (Inputs(flags={flag: value}), Inputs(env={f"CODER_{flag.upper().replace('-', '_')}": value})):
        if flag == "external-auth-providers" and inputs.env:
            continue  # its variables are numbered
        with pytest.raises(CoderError, match=f"--{flag} is|--{flag}: ") as refused:
            server_config(inputs, Path("/nowhere"))
        assert refused.value.code == "bad_option"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("support-links", f"[{LINK}]"),
        ("support-links", "- name: Wiki\n  target: https://wiki.example.com\n  icon: docs"),
        ("support-links", "[]"),
        ("support-links", "null"),
        ("oidc-auth-url-params", '{"access_type": "offline"}'),
        ("oidc-auth-url-params", "access_type: offline"),
        ("oidc-auth-url-params", "null"),
        ("external-auth-providers", "[]"),
        ("ssh-config-options", "ServerAliveInterval=30"),
        ("ssh-config-options", "ServerAliveInterval 30"),
        ("ssh-config-options", "SetEnv=A=b"),
    ],
)
def test_valid_values_are_accepted(flag: str, value: str) -> None:
    server_config(Inputs(flags={flag: value}), Path("/nowhere"))


def test_structured_values_are_json_or_yaml() -> None:
    assert struct_value(f"[{LINK}]") == struct_value("- name: Wiki\n  target: https://wiki.example.com")


@pytest.mark.parametrize(
    "flag",
    [
        "agent-stats-refresh-interval",
        "autobuild-poll-interval",
        "job-hang-detector-interval",
        "proxy-health-interval",
        "workspace-prebuilds-reconciliation-interval",
    ],
)
def test_intervals_have_a_minimum(flag: str) -> None:
    """At 0 a loop would query the database without a pause."""
    for text in ("0", "0s", "999ms"):
        with pytest.raises(CoderError, match=f"--{flag}: {text} is less than 1s"):
            server_config(Inputs(flags={flag: text}), Path("/nowhere"))
    server_config(Inputs(flags={flag: "1s"}), Path("/nowhere"))
