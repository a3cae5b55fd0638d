"""Check whether Go's net/url would parse a text, and with which error it would refuse.

Templates see these errors as diagnostics, and servers written in Go read the same values later. Only the verdict is
here; urllib takes URLs apart for our own use.
"""

from __future__ import annotations

import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_HOST_BYTES = re.compile(rb"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"%\x80-\xff]")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(:\d*)?")


def url_problem(text: str) -> str:
    """Return `parse "<url>": <reason>`, or "" for a URL Go accepts."""
    reason = _reason(text)
    return f"parse {go_quote(text)}: {reason}" if reason else ""


def go_quote(text: str) -> str:
    """Quote as Go's %q does for the texts used here: quotes, backslashes and control characters escaped."""
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif char in _SHORT:
            out.append(_SHORT[char])
        elif ord(char) < 0x20 or ord(char) == 0x7F:
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def _reason(text: str) -> str:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return "net/url: invalid control character in URL"
    body, _, fragment = text.partition("#")
    if body == "*":
        return ""
    scheme, rest, problem = _split_scheme(body)
    if problem:
        return problem
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        if scheme:
            return _bad_escape(fragment)  # opaque, as in mailto:someone
        if ":" in rest.split("/", 1)[0]:
            return "first path segment in URL cannot contain colon"
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        problem = _authority_problem(authority)
        if problem:
            return problem
        rest = slash + path
    return _bad_escape(rest) or _bad_escape(fragment)


def _split_scheme(text: str) -> tuple[str, str, str]:
    colon = text.find(":")
    if colon == 0:
        return "", text, "missing protocol scheme"
    if colon > 0 and _SCHEME.fullmatch(text[:colon]):
        return text[:colon].lower(), text[colon + 1 :], ""
    return "", text, ""


def _authority_problem(authority: str) -> str:
    userinfo, at, host = authority.rpartition("@")
    if at and not _USERINFO.fullmatch(userinfo):
        return "net/url: invalid userinfo"
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            return "missing ']' in host"
        if not _PORT.fullmatch(host[end + 1 :]):
            return f"invalid port {go_quote(host[end + 1 :])} after host"
        return ""
    colon = host.rfind(":")
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        return f"invalid port {go_quote(host[colon:])} after host"
    return _host_problem(host)


def _host_problem(host: str) -> str:
    match = _ESCAPE.search(host)
    if match:
        return f"invalid URL escape {go_quote(match.group(0))}"
    for escape in re.findall(r"%([0-9A-Fa-f]{2})", host):
        if int(escape, 16) < 0x80:  # only bytes beyond ASCII may be escaped in a host
            return f'invalid URL escape "%{escape}"'
    for byte in host.encode():
        if not _HOST_BYTES.match(bytes((byte,))):
            return f"invalid character {go_quote(chr(byte))} in host name"
    return ""


def _bad_escape(text: str) -> str:
    match = _ESCAPE.search(text)
    return f"invalid URL escape {go_quote(match.group(0))}" if match else ""
