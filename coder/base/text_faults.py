"""Faults of texts that should be an address or a pattern, in the words of Go that scripts and users know.

Pure: one function per kind of option, and a table of them. Sources: the rules and messages of Go's net/url (`Parse`),
net (`SplitHostPort`) and regexp packages. Kinds that become values of another type are in `config.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_PASSWORD = re.compile(r"(//[^/:@]*):[^/]*@")


def url_fault(value: str) -> str:
    """Return the fault in the words of Go's net/url, which accepts nearly everything as a path; without a password."""
    shown = _PASSWORD.sub(r"\1:***@", value)
    prefix = f'parse "{shown}": '
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in value):
        return f"{prefix}net/url: invalid control character in URL"
    before, _, fragment = value.partition("#")
    path = before.partition("?")[0]
    scheme, colon, rest = path.partition(":")
    if colon and not scheme:
        return f"{prefix}missing protocol scheme"
    is_scheme = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) is not None
    if colon and not is_scheme and "/" not in scheme:
        return f"{prefix}first path segment in URL cannot contain colon"
    if colon and is_scheme and rest.startswith("//"):
        user, _, host = rest[2:].partition("/")[0].rpartition("@")
        if fault := _host_fault(host) or ("" if _USER.fullmatch(user) else "net/url: invalid userinfo"):
            return prefix + fault
    if bad_escape := _ESCAPE.search(path) or _ESCAPE.search(fragment):
        return f'{prefix}invalid URL escape "{bad_escape[0]}"'
    return ""


def _host_fault(host: str) -> str:
    bare, port = host, ""
    if host.startswith("["):
        bare, bracket, port = host.rpartition("]")
        if not bracket:
            return "missing ']' in host"
    elif ":" in host:
        bare, _, digits = host.rpartition(":")
        port = f":{digits}"
    if port and not re.fullmatch(":[0-9]*", port):
        return f'invalid port "{port}" after host'
    fault = re.search(r'[\s<>"\\^`{|}]', bare)
    return f'invalid character "{fault[0]}" in host name' if fault else ""


def host_port_fault(value: str) -> str:
    """Return the fault in the words of net.SplitHostPort: IPv6 in brackets, a port which may be empty, or a name."""
    if not value:
        return "must not be empty"
    prefix = f"address {value}: "
    host, colon, _ = value.rpartition(":")
    if not colon:
        return f"{prefix}missing port in address"
    if value.startswith("["):
        host, bracket, port = value.partition("]")
        if not bracket:
            return f"{prefix}missing ']' in address"
        if port != value[value.rindex(":") :]:
            return f"{prefix}{'too many colons' if port.startswith(':') else 'missing port'} in address"
        host = host[1:]
        rest = host + port
    elif ":" in host:
        return f"{prefix}too many colons in address"
    else:
        rest = value
    fault = next((letter for letter in "[]" if letter in rest), "")
    return f"{prefix}unexpected '{fault}' in address" if fault else ""


def regexp_fault(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        return f"error parsing regexp: {error.msg}: `{value}`"
    return ""


FAULTS: dict[str, Callable[[str], str]] = {"host:port": host_port_fault, "regexp": regexp_fault, "url": url_fault}
"""Function per kind of option that returns the fault of a text, "" for a valid one."""
