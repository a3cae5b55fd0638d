"""Convert `pip config list` (standard input) to `NAME=value` lines of uv's environment.

Exits with 1 and names the setting if it has no equivalent here: then only pip installs as configured. Settings of uv in
the environment take precedence.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Mapping

SECTIONS = ("global", "install", ":env:")
"""Sections that `pip install` reads; later ones override."""
VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
WITHOUT_EFFECT = {
    "cache-dir",
    "config-file",
    "debug",
    "disable-pip-version-check",
    "log",
    "no-cache-dir",
    "no-clean",
    "no-color",
    "no-compile",
    "compile",
    "no-input",
    "no-python-version-warning",
    "no-warn-conflicts",
    "no-warn-script-location",
    "progress-bar",
    "quiet",
    "require-virtualenv",
    "retries",
    "root-user-action",
    "verbose",
}
"""Settings of pip's output and cache, which do not affect what is installed or its source."""
NO = {"n", "no", "f", "false", "off", "0"}


def settings(lines: Iterable[str]) -> dict[str, str]:
    """Return the settings by pip's names, without empty ones, which pip ignores."""
    sections: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in lines:
        key, equals, value = line.strip().partition("=")
        section, _, name = key.partition(".")
        if equals and section in sections:
            sections[section][name.replace("_", "-")] = str(ast.literal_eval(value))
    together = {name: value for section in SECTIONS for name, value in sections[section].items() if value}
    return {name: " ".join(value.split()) for name, value in together.items()}


def environment(pip_settings: Mapping[str, str]) -> dict[str, str]:
    """Return uv's environment. Raise KeyError with the first setting that uv lacks."""
    result = {}
    for name, value in pip_settings.items():
        if name in WITHOUT_EFFECT:
            continue
        variable = VARIABLES[name]
        if name == "no-index":
            if value.lower() not in NO:
                result[variable] = "true"
        elif name == "find-links":
            result[variable] = value.replace(" ", ",")
        else:
            result[variable] = value
    return {"UV_NATIVE_TLS": "true", "UV_NO_PROGRESS": "1"} | result


def main() -> int:
    try:
        uv_environment = environment(settings(sys.stdin))
    except KeyError as setting:
        print(f"uv has no equivalent of pip's setting {setting.args[0]}: pip installs the packages", file=sys.stderr)
        return 1
    for name, value in uv_environment.items():
        print(f"{name}={os.environ.get(name) or value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
