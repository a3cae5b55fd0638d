"""Settings of an SSH client (ssh_config(5)), as people and servers write them for hosts."""

from __future__ import annotations


def ssh_option(text: str) -> tuple[str, str]:
    """Name and value of a setting, `name=value` or `name value`. Raises ValueError.

    One line, always: what follows a line end would be a setting of its own, or another host's.
    """
    name, _, value = text.strip().partition("=" if "=" in text else " ")
    if not name.strip() or not value.strip() or not text.isprintable():
        raise ValueError("an SSH setting has a name and a value")
    return name, value
