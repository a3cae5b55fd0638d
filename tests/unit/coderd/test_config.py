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
