"""Proxy settings of the user's desktop, for an environment that has none: Windows keeps them in the registry.

A script with the address of a proxy (PAC) is not evaluated. The settings hold no login; a proxy that requires one needs
HTTPS_PROXY with the login in its URL, and the error for its answer 407 says so.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping

_OCTETS = re.compile(r"((?:\d{1,3}\.){1,3})\*")
_KEY = r"Software\Microsoft\Windows\CurrentVersion\Internet Settings"


def desktop_proxies() -> dict[str, str]:
    """Return the proxies of this user's desktop, as `environment_proxies` does; none on other systems."""
    return registry_proxies(_read_registry())


def registry_proxies(values: Mapping[str, object]) -> dict[str, str]:
    """Return the proxies of the values ProxyEnable, ProxyServer and ProxyOverride.

    ProxyServer is one address for all schemes, or `http=host:port;https=host:port;socks=…`. ProxyOverride has names
    with `*` and `<local>`, for names without a dot.
    """
    server = str(values.get("ProxyServer") or "").strip()
    if not values.get("ProxyEnable") or not server:
        return {}
    parts = [part.strip() for part in server.split(";")]
    if "=" in server:
        named = dict(part.partition("=")[::2] for part in parts if "=" in part)
        found = {scheme: named[scheme].strip() for scheme in ("http", "https") if named.get(scheme, "").strip()}
    else:
        found = {"http": parts[0], "https": parts[0]}
    exceptions = [_exception(entry.strip()) for entry in str(values.get("ProxyOverride") or "").split(";")]
    if found and any(exceptions):
        found["no"] = ",".join(entry for entry in exceptions if entry)
    return found


def _exception(entry: str) -> str:
    """Return an exception as NO_PROXY has it: `10.*` is a network there."""
    name = entry.partition("://")[2] or entry
    if match := _OCTETS.fullmatch(name):
        octets = match[1].strip(".").split(".")
        return ".".join([*octets, "0", "0", "0"][:4]) + f"/{8 * len(octets)}"
    return name


def _read_registry() -> dict[str, object]:
    """Return the user's settings; none for an account without them, as a service's."""
    values: dict[str, object] = {}
    if sys.platform == "win32":
        import winreg

        with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_CURRENT_USER, _KEY) as key:
            for name in ("ProxyEnable", "ProxyServer", "ProxyOverride"):
                with contextlib.suppress(OSError):  # not set
                    values[name] = winreg.QueryValueEx(key, name)[0]
    return values
