"""Settings of its process that this package reads.

The server's `ServerConfig` has all of these, and a workspace proxy builds its own from its options. Both are above this
package, so it names the settings and not the class that holds them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol


class ListenerSettings(Protocol):
    """Addresses and TLS of the HTTP server."""

    @property
    def http_address(self) -> str: ...
    @property
    def tls_enable(self) -> bool: ...
    @property
    def tls_address(self) -> str: ...
    @property
    def tls_cert_file(self) -> tuple[str, ...]: ...
    @property
    def tls_key_file(self) -> tuple[str, ...]: ...
    @property
    def tls_client_auth(self) -> str: ...
    @property
    def tls_client_ca_file(self) -> str: ...
    @property
    def tls_min_version(self) -> str: ...
    @property
    def tls_ciphers(self) -> tuple[str, ...]: ...
    @property
    def tls_allow_insecure_ciphers(self) -> bool: ...


class TrustedProxySettings(Protocol):
    """Peers that may name the client's address, and the headers they use."""

    @property
    def proxy_trusted_origins(self) -> tuple[str, ...]: ...
    @property
    def proxy_trusted_headers(self) -> tuple[str, ...]: ...


class RateLimitSettings(Protocol):
    """Limits of requests per minute of the process."""

    @property
    def api_rate_limit(self) -> int: ...
    @property
    def dangerous_disable_rate_limits(self) -> bool: ...


class AppCookieSettings(Protocol):
    """Hosts of applications, and the cookies of their visitors."""

    @property
    def wildcard_access_url(self) -> str: ...
    @property
    def disable_path_apps(self) -> bool: ...
    @property
    def secure_auth_cookie(self) -> bool: ...
    @property
    def samesite_auth_cookie(self) -> str: ...
    @property
    def session_duration(self) -> timedelta: ...
    @property
    def host_prefix_cookie(self) -> bool: ...
