"""Addresses of workspace applications: by path, or by a host below the wildcard; both directions, pure.

Source: docs/protocol/agent-services.md#applications. `services/apps/app_access.py` checks permission to open them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import quote, unquote, urlsplit

from coder.domain.foundation.web_addresses import host_of_origin

AccessMethod = Literal["path", "subdomain", "terminal"]
ACCESS_METHODS: tuple[AccessMethod, ...] = get_args(AccessMethod)

_PART = r"[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*"
_LABEL = re.compile(
    rf"(?:(?P<prefix>.+)---)?(?P<app>{_PART})(?:--(?P<agent>{_PART}))?--(?P<workspace>{_PART})--(?P<user>{_PART})"
)
_PATH = re.compile(r"/(?:@|%40)(?P<user>[^/]+)/(?P<place>[^/]+)/apps/(?P<app>[^/]+)(?P<rest>/.*)?", re.DOTALL)
_PORT = re.compile(r"(?P<port>[0-9]{4,5})(?P<tls>s?)")
_WILDCARD_LABEL = re.compile(r"[a-zA-Z0-9-]*")
_MAX_LABEL = 63
"""RFC 1035 section 2.3.4."""


@dataclass(frozen=True, slots=True)
class AppRequest:
    """Application named by an address; also the subject of a signed token."""

    access_method: AccessMethod
    base_path: str
    """Path prefix with a trailing slash; `/` on hosts."""
    username_or_id: str
    workspace_name_or_id: str
    agent_name_or_id: str
    app_slug_or_port: str
    app_prefix: str = ""

    @property
    def port(self) -> PortApp | None:
        """Return the port requested instead of an application; only hosts name ports."""
        if self.access_method != "subdomain" or not self.agent_name_or_id:
            return None
        return parse_port(self.app_slug_or_port)


@dataclass(frozen=True, slots=True)
class PortApp:
    """Port of a workspace, with or without an application behind it."""

    number: int
    tls: bool

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.number}"


def parse_port(text: str) -> PortApp | None:
    """Parse `8080` or `8443s`: four or five digits."""
    match = _PORT.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= 65535:
        return None
    return PortApp(int(match["port"]), bool(match["tls"]))


def parse_app_path(path: str) -> tuple[AppRequest, str] | None:
    """Return the application named by a path and the rest of the path, percent-encoded as received ("" without the
    slash)."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    user, target, app = (unquote(match[name]) for name in ("user", "place", "app"))
    workspace, _, agent = target.partition(".")
    base = f"/@{_quoted(user)}/{_quoted(target)}/apps/{_quoted(app)}/"
    return AppRequest("path", base, user, workspace, agent, app), match["rest"] or ""


def _quoted(text: str) -> str:
    return quote(text, safe="")


@dataclass(frozen=True, slots=True)
class HostPattern:
    """Host pattern: `*.apps.example.com` or `*--apps.example.com`, perhaps with a port."""

    pattern: str

    @property
    def suffix(self) -> str:
        """Return the part after the star, without a port, in lower case."""
        return self.pattern.partition("*")[2].partition(":")[0].lower()

    def label_of(self, host: str) -> str | None:
        """Return the part of a Host header that matches the star; None when the host does not match."""
        name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
        name = name.lower().removesuffix(".")  # the root's dot; a second makes the name invalid
        if not self.suffix or not name.endswith(self.suffix) or len(name) == len(self.suffix):
            return None
        label = name[: -len(self.suffix)]
        return label if _WILDCARD_LABEL.fullmatch(label) else None

    def with_port(self, access_url: str) -> str:
        """Return the pattern for links: the access URL's port is added when the pattern has none."""
        port = urlsplit(access_url).port
        return f"{self.pattern}:{port}" if self.pattern and port and ":" not in self.pattern else self.pattern


def frame_source(pattern: str) -> str:
    """Return the pattern for a Content-Security-Policy, where a star stands for whole labels only."""
    return "*" + pattern[pattern.index(".") :] if not pattern.startswith("*.") and "." in pattern else pattern


def explain_wildcard(pattern: str) -> str:
    """Return why a host pattern cannot be used; "" when it can (or there is none)."""
    if not pattern:
        return ""
    if "://" in pattern or "/" in pattern:
        return "it must be a host without scheme or path"
    if pattern.count("*") != 1 or not pattern.startswith("*"):
        return "it must begin with its only asterisk"
    host = pattern.partition(":")[0]
    if len([label for label in host.split(".") if label]) < 2:
        return "it needs a domain, as in *.apps.example.com"
    if not re.fullmatch(r"\*[a-zA-Z0-9-]*(?:\.[a-zA-Z0-9-]+)+(?::\d+)?", pattern):
        return "it holds characters no host name has"
    return ""


def parse_app_label(label: str) -> AppRequest | None:
    """Return the application named by a host label: `[prefix---]app[--agent]--workspace--user`, app a slug or a
    port."""
    match = _LABEL.fullmatch(label)
    if match is None or len(label) > _MAX_LABEL:
        return None
    prefix = f"{match['prefix']}---" if match["prefix"] else ""
    return AppRequest("subdomain", "/", match["user"], match["workspace"], match["agent"] or "", match["app"], prefix)


def label_user(pattern: HostPattern, origin: str) -> str:
    """Return the owner of the application in an Origin header; "" when the pattern does not match."""
    label = pattern.label_of(host_of_origin(origin))
    request = parse_app_label(label) if label else None
    return request.username_or_id if request else ""
