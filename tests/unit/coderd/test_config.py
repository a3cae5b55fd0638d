"""Settings tell the truth about themselves: what is acted on, and what is only kept."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.cli.server import _FILE_OPTIONS
from coder.coderd.config import ONLY_SHOWN, ServerConfig, effective_name, ignored_settings, server_config
from coder.coderd.options import OPTIONS

SOURCES = Path(__file__).parents[3] / "coder"
DECLARED_IN = {"config.py", "options.py"}
SHOWN_IN = "deployment.py"
NOT_OURS = {"disable-chat-sharing", "external-auth-providers"}  # no chats; the providers are numbered variables
RECORDED = Path(__file__).parents[2] / "data" / "api" / "recorded" / "exchanges" / "deployment.jsonl"


def readers(names: set[str]) -> dict[str, set[str]]:
    """By setting: the files that read it, without those that only declare or show all of them."""
    pattern = re.compile(r'\bconfig\.(\w+)|\["(\w+)"\]')
    found: dict[str, set[str]] = {name: set() for name in names}
    for folder in (SOURCES / "coderd", SOURCES / "cli"):
        for path in folder.rglob("*.py"):
            if path.name in DECLARED_IN:
                continue
            for groups in pattern.findall(path.read_text()):
                for name in groups:
                    found.get(name, set()).add(path.name)
    return found


def test_only_the_named_settings_are_without_effect() -> None:
    names = {item.name for item in fields(ServerConfig)} - {"data_dir", "resolved"}
    read = readers(names)
    assert {name for name in names if not read[name]} <= ONLY_SHOWN
    assert not {name for name in ONLY_SHOWN if read[name] - {SHOWN_IN}}, "it has an effect now: take it off the list"


def test_settings_without_effect_are_told() -> None:
    given = Inputs(
        flags={"update-check": "true", "tls-ciphers": "any", "http-address": "127.0.0.1:0"},
        env={"CODER_BROWSER_ONLY": "true", "CODER_PROMETHEUS_ADDRESS": "127.0.0.1:2112"},
    )
    config = server_config(given, Path("/nowhere"))
    assert config.resolved is not None
    assert ignored_settings(config.resolved) == ["--tls-ciphers", "--update-check", "--browser-only"]


def test_former_names_still_count() -> None:
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


def test_flags_and_variables_are_the_recorded_ones() -> None:
    lines = map(json.loads, RECORDED.read_text().splitlines())
    shown = next(line["response"]["body"]["options"] for line in lines if line["request"]["path"].endswith("/config"))
    ours = {option.flag: option for option in OPTIONS}
    ours |= {option.flag: option for option in _FILE_OPTIONS}
    wrong = []
    for option in shown:
        group = option.get("group", {}).get("name", "")
        if group.startswith(("AI ", "Chat", "Template Builder")) or option["flag"] in NOT_OURS:
            continue
        mine = ours.get(option["flag"])
        if mine is None:
            wrong.append(f"{option['flag']} is missing")
        elif mine.env != option.get("env", ""):
            wrong.append(f"{option['flag']}: {option.get('env')} became {mine.env}")
    assert not wrong, wrong


@pytest.mark.parametrize("endpoint", ["vpn.example.com", "2001:db8::1:51820", "https://vpn.example.com:51820"])
def test_an_endpoint_no_client_could_use_is_refused(endpoint: str) -> None:
    with pytest.raises(CoderError, match="WireGuard clients cannot be told") as caught:
        server_config(Inputs(env={"CODER_WIREGUARD_ENDPOINT": endpoint}), Path("/nowhere"))
    assert repr(endpoint) in caught.value.message and "--wireguard-endpoint" in caught.value.hint
    good = server_config(Inputs(flags={"wireguard-endpoint": "[2001:db8::1]:51820"}), Path("/nowhere"))
    assert good.wireguard_endpoint == "[2001:db8::1]:51820"
