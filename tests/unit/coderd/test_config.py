"""Settings tell the truth about themselves: what is acted on, and what is only kept."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from coder.base.config import Inputs
from coder.coderd.config import ONLY_SHOWN, ServerConfig, ignored_settings, server_config

SOURCES = Path(__file__).parents[3] / "coder"
DECLARED_IN = {"config.py", "options.py"}
SHOWN_IN = "deployment.py"


def readers(name: str) -> set[str]:
    """Files that read a setting, without those that only declare or show all of them."""
    pattern = re.compile(rf'\bconfig\.{name}\b|\["{name}"\]')
    folders = (SOURCES / "coderd", SOURCES / "cli")
    return {
        path.name
        for folder in folders
        for path in folder.rglob("*.py")
        if path.name not in DECLARED_IN and pattern.search(path.read_text())
    }


def test_only_the_named_settings_are_without_effect() -> None:
    names = {item.name for item in fields(ServerConfig)} - {"data_dir", "resolved"}
    assert {name for name in names if not readers(name)} <= ONLY_SHOWN
    assert not {name for name in ONLY_SHOWN if readers(name) - {SHOWN_IN}}, "it has an effect now: take it off the list"


def test_settings_without_effect_are_told() -> None:
    given = Inputs(
        flags={"update-check": "true", "tls-ciphers": "any", "http-address": "127.0.0.1:0"},
        env={"CODER_BROWSER_ONLY": "true", "CODER_PROMETHEUS_ADDRESS": "127.0.0.1:2112"},
    )
    config = server_config(given, Path("/nowhere"))
    assert config.resolved is not None
    assert ignored_settings(config.resolved) == ["--tls-ciphers", "--update-check", "--browser-only"]
