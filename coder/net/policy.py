"""Address of a server and the rules for reaching it; no I/O, so that short commands can load it cheaply.

Proxies follow the usual environment (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, upper or lower case), then the
settings of the desktop (`system_proxies`).
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from coder.base.config import process_environment
from coder.base.files.from_files import FromFiles
from coder.base.secret import Secret
from coder.base.version import BUILD_VERSION
from coder.net.errors import NetError, proxy_refusal
from coder.net.system_proxies import desktop_proxies

if TYPE_CHECKING:
    import ssl

STRIPPED_FOR = 300.0
"Seconds after which upgrades are tried again where they were stripped: laptops change networks."
OVERLOAD_BELIEVED = 90.0
"Seconds for which a server's sign of overload is believed: a client behind a middlebox may not wait for ever."
CONNECT_TIMEOUT = 10.0
"Seconds for TCP, proxy and TLS together; upstream's relay dialler uses the same."


class ServerKnowledge:
    """Knowledge of this process about the paths to servers; shared by all policies derived from one."""

    __slots__ = ("_held_back", "_overloaded", "_stripped")

    def __init__(self) -> None:
        self._stripped: dict[str, float] = {}
        self._held_back: dict[str, float] = {}
        self._overloaded: dict[str, tuple[float, float]] = {}
        "When the sign of overload was shown first and last."

    def strips_upgrades(self, origin: str, now: float) -> bool:
        """Return whether upgrades to this origin failed recently, while plain requests got through."""
        return now - self._stripped.get(origin, -STRIPPED_FOR) < STRIPPED_FOR

    def record_stripped(self, origin: str, now: float) -> None:
        self._stripped[origin] = now

    def holds_back(self, origin: str, now: float) -> bool:
        """Return whether answers of this origin are forwarded only when they are complete."""
        return now - self._held_back.get(origin, -STRIPPED_FOR) < STRIPPED_FOR

    def on_held_back(self, origin: str, now: float) -> None:
        self._held_back[origin] = now

    def believes_overload(self, origin: str, now: float, *, is_shown: bool) -> bool:
        """Record whether a server shows the sign of an overload; return whether it counts."""
        if not is_shown:
            self._overloaded.pop(origin, None)
            return False
        first, last = self._overloaded.get(origin, (now, now))
        if now - last > STRIPPED_FOR:
            first = now
        self._overloaded[origin] = first, now
        return now - first < OVERLOAD_BELIEVED


@dataclass(frozen=True, slots=True)
class DialPolicy:
    """Configuration that decides how a server is reached."""

    url: str
    "Base URL, scheme http or https."
    token: Secret | None = None
    "Session or agent token; sent as `token_header`."
    token_header: str = "Coder-Session-Token"  # noqa: S105 - a header name
    headers: tuple[tuple[str, str], ...] = ()
    "Extra headers of the user, sent with every request including upgrades."
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    insecure: bool = False
    proxies: Mapping[str, str] = field(default_factory=lambda: user_proxies(process_environment()))
    "`http`, `https`, `no` -> value; empty mapping means never a proxy."
    timeout: float = CONNECT_TIMEOUT
    address: str = ""
    "Connect to this address instead of resolving the host: for callers that checked the address of a name."
    by_family: tuple[str, str] = ("", "")
    """Addresses of the host by IPv4 and by IPv6: an address, `none` to skip the family, empty to resolve it. A proxy
    resolves names itself."""
    certificate_name: str = ""
    """Name that the server's certificate must have, when it is not the host's; the host is still the requested server
    name."""
    learned: ServerKnowledge = field(default_factory=ServerKnowledge, compare=False, repr=False)

    def with_token(self, token: Secret | None) -> DialPolicy:
        return replace(self, token=token)

    def request_headers(self) -> list[tuple[str, str]]:
        entries = list(self.headers)
        if self.token:
            entries.append((self.token_header, self.token.reveal()))
        return entries

    @property
    def origin(self) -> SplitResult:
        return urlsplit(self.url)


def user_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy settings of an environment, or, if it names no proxy, those of the user's desktop."""
    found = environment_proxies(env)
    if "http" in found or "https" in found:
        return found
    return desktop_proxies() | found


def environment_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """Return proxy settings of an environment; lower-case names win, as in curl.

    ALL_PROXY often exists for programs with SOCKS, which is not supported here: such a value is ignored. A SOCKS value
    for HTTP or HTTPS itself is kept, and rejected when it is used.
    """
    entries: dict[str, str] = {}
    for key, names in (
        # HTTP_PROXY upper-case is unsafe under CGI; we are never a CGI.
        ("http", ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")),
        ("https", ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")),
        ("no", ("no_proxy", "NO_PROXY")),
    ):
        for name in names:
            value = env.get(name, "")
            if value and not (name.lower() == "all_proxy" and value.lower().startswith("socks")):
                entries[key] = value
                break
    return entries


def proxy_for(policy: DialPolicy, host: str, scheme: str) -> str:
    """Return the proxy URL for a host, or an empty string. Loopback hosts never go through a proxy.

    Raises NetError `proxy` for an unsupported kind of proxy.
    """
    proxy = policy.proxies.get(scheme, "")
    if not proxy or _is_loopback(host) or _bypassed(host, policy.proxies.get("no", "")):
        return ""
    kind, separator, _ = proxy.partition("://")
    if not separator:
        return f"http://{proxy}"
    if kind.lower() not in {"http", "https"}:
        raise NetError(
            "proxy",
            f"{kind} proxies are not supported",
            f"Set {scheme.upper()}_PROXY to an HTTP proxy, or add {host} to NO_PROXY.",
        )
    return proxy


def forwarding(policy: DialPolicy) -> tuple[str, list[tuple[str, str]]]:
    """Return what a plain HTTP request through a proxy adds: the prefix of its target, and headers of the proxy.

    The target is the absolute form of RFC 9112 section 3.2.2, since many proxies allow CONNECT to port 443 only. Empty
    for HTTPS and without a proxy.
    """
    origin = policy.origin
    if origin.scheme not in {"http", "ws"}:
        return "", []
    proxy = proxy_for(policy, origin.hostname or "", "http")
    if not proxy:
        return "", []
    return f"http://{host_header(origin)}", proxy_login(proxy)


def proxy_login(proxy: str) -> list[tuple[str, str]]:
    """Return the header with the login in a proxy's URL (RFC 7617); none without one."""
    import base64

    parts = urlsplit(proxy)
    if parts.username is None:
        return []
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [("Proxy-Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")]


def is_proxy_login(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a forwarding proxy asks for a login. Some answer 401, which the server never does without its
    own header. `headers` have lower-case names."""
    return status == 407 or (status == 401 and "x-coder-build-version" not in headers)


def refused_forwarding(policy: DialPolicy) -> NetError:
    """Return the error for a proxy that requires a login before it forwards a request."""
    origin = policy.origin
    proxy = urlsplit(proxy_for(policy, origin.hostname or "", "http"))
    return proxy_refusal(proxy.hostname or "", host_header(origin), "407 Proxy Authentication Required")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _bypassed(host: str, no_proxy: str) -> bool:
    return any(_matches(host.lower(), entry.strip().lower()) for entry in no_proxy.split(","))


def _matches(host: str, entry: str) -> bool:
    """Return whether an entry of NO_PROXY matches the host: `*`, a name with its subdomains, an address, a network.

    The port does not matter.
    """
    if not entry:
        return False
    if entry == "*":
        return True
    if entry == "<local>":  # from Windows' own settings
        return "." not in host and ":" not in host
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = entry.rpartition(":")[0] if entry.count(":") == 1 else entry
        bare = name.removeprefix("*").lstrip(".")
        return bool(bare) and (host == bare or host.endswith(f".{bare}"))
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def default_port(scheme: str) -> int:
    return 443 if scheme in {"https", "wss"} else 80


def host_header(origin: SplitResult) -> str:
    """Return the host with brackets for IPv6 and the port unless it is the scheme's default (RFC 9110 section 7.2)."""
    host = origin.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = origin.port
    return f"{host}:{port}" if port and port != default_port(origin.scheme) else host


def common_headers(policy: DialPolicy) -> list[tuple[str, str]]:
    """Return the headers of every request: the user agent, then the policy's own headers."""
    return [
        ("Host", host_header(policy.origin)),
        ("User-Agent", f"coder/{BUILD_VERSION}"),
        ("X-Coder-Build-Version", BUILD_VERSION),
        *policy.request_headers(),
    ]


def load_certificate_folders(context: ssl.SSLContext, folders: str) -> None:
    """Trust every certificate of every file in folders separated as PATH is, whatever the files are called.

    OpenSSL reads files with names of hashes only; Go, and so upstream, reads all. Other files are skipped, as there.
    """
    import ssl
    from pathlib import Path

    for folder in filter(None, folders.split(os.pathsep)):
        try:
            paths = sorted(Path(folder).iterdir())
        except OSError:
            continue
        for path in paths:
            with contextlib.suppress(OSError, ssl.SSLError, ValueError):
                context.load_verify_locations(cadata=path.read_text("ascii", "ignore"))


def tls_context(ca_file: str, cert: str, key: str, insecure: bool, check_name: bool = True) -> ssl.SSLContext:
    """Return the client's TLS settings, with the files as they are now: agents and servers run longer than
    certificates. Raises NetError `tls_files` when a file cannot be used.

    Without `check_name` the caller compares the certificate's names.
    """
    return _contexts(ca_file, cert, key, insecure, check_name).get()


@lru_cache(maxsize=8)
def _contexts(ca_file: str, cert: str, key: str, insecure: bool, check_name: bool) -> FromFiles[ssl.SSLContext]:
    import ssl

    def files() -> tuple[str, ...]:
        default = ssl.get_default_verify_paths().cafile or ""
        return ca_file, cert, key, default, *os.environ.get("SSL_CERT_DIR", "").split(os.pathsep)

    def make() -> ssl.SSLContext:
        return _new_context(ca_file, cert, key, insecure, check_name)

    return FromFiles("certificates of a client", files, make)


def _new_context(ca_file: str, cert: str, key: str, insecure: bool, check_name: bool) -> ssl.SSLContext:
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise NetError(
            "tls_files", f"no certificate authority can be read from {ca_file}", "It must be a PEM file."
        ) from error
    if ca_file:
        context.load_default_certs()
    load_certificate_folders(context, os.environ.get("SSL_CERT_DIR", ""))
    context.check_hostname = check_name
    # WebSockets and upgrades exist in HTTP/1.1 only.
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert or key:
        try:
            context.load_cert_chain(cert, key or None)
        except (OSError, ssl.SSLError) as error:
            raise NetError(
                "tls_files",
                f"the client certificate {cert or '(none)'} with key {key or '(in the same file)'} cannot be used",
                "Give a pair of PEM files with --client-tls-cert-file and --client-tls-key-file.",
            ) from error
    return context
