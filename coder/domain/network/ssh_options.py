"""Settings of an SSH client (ssh_config(5)), as users and servers write them for hosts."""

from __future__ import annotations

import re

# The first sign ends the name: values contain both, too (`SetEnv A=b`, `ProxyCommand nc -X 5 %h %p`).
_OPTION = re.compile(r"([^\s=]+)(?:\s*=\s*|\s+)([^\s=].*)")


def ssh_option(text: str) -> tuple[str, str]:
    """Return name and value of a setting, `name=value` or `name value`. Raises ValueError.

    A single line: text after a line end would be a setting of its own, or another host's.
    """
    match = _OPTION.fullmatch(text.strip())
    if match is None or not text.isprintable():
        raise ValueError("an SSH setting has a name and a value")
    return match[1], match[2]
