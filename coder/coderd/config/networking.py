"""Settings: listeners, addresses and cookies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from coder.coderd.config.groups import CLUSTER, DANGEROUS, GENERAL, HTTP, NETWORKING, TLS
from coder.coderd.config.setting import EVERY, Url, concern, setting

DEFAULT_DOCS_URL = "https://coder.com/docs/@v2.34.0"
"""Upstream's documentation; the server links to its own instead if that is built in."""


@concern(NETWORKING)
@dataclass(frozen=True, kw_only=True)
class AddressSettings:
    """Addresses of this server for users and workspaces, and its trusted proxies."""

    access_url: Url = setting(
        "",
        "Access URL",
        "Address at which users and workspaces reach this server, such as https://coder.example.com.",
        yaml="accessURL",
        path="access_url",
        proxies=True,
    )
    wildcard_access_url: str = setting(
        "",
        "Wildcard Access URL",
        "Host pattern for workspace applications, such as *.example.com.",
        yaml="wildcardAccessURL",
        path="wildcard_access_url?",
        proxies=True,
    )
    processes: int = setting(
        1,
        "Processes",
        "Processes that accept connections; with more than one a supervisor runs further ones for relayed traffic, "
        "applications, and automatic actions.",
        yaml="processes",
    )
    docs_url: Url = setting(
        DEFAULT_DOCS_URL,
        "Docs URL",
        "Address of the documentation that pages and messages link to; with the default the server serves its own at "
        "/docs.",
        yaml="docsURL",
        path="docs_url",
        proxies=True,
    )
    redirect_to_access_url: bool = setting(
        False,
        "Redirect to Access URL",
        "Redirect requests for other hosts to the access URL.",
        yaml="redirectToAccessURL",
        path="redirect_to_access_url?",
    )
    proxy_trusted_headers: tuple[str, ...] = setting(
        (),
        "Proxy Trusted Headers",
        "Headers to take the client's address from, such as X-Forwarded-For.",
        yaml="proxyTrustedHeaders",
        path="proxy_trusted_headers?",
        proxies=True,
    )
    proxy_trusted_origins: tuple[str, ...] = setting(
        (),
        "Proxy Trusted Origins",
        "Proxy addresses (CIDR) whose headers are trusted.",
        yaml="proxyTrustedOrigins",
        path="proxy_trusted_origins?",
        proxies=True,
    )
    cluster_host: str = setting(
        "",
        "Cluster Host",
        "Without effect: replicas find each other by the database.",
        group=CLUSTER,
        yaml="clusterHost",
        path="cluster.host",
        enterprise=True,
    )


@concern(NETWORKING)
@dataclass(frozen=True, kw_only=True)
class CookieSettings:
    """Session cookies."""

    secure_auth_cookie: bool = setting(
        False,
        "Secure Auth Cookie",
        "Set Secure on session cookies; the default follows the access URL.",
        yaml="secureAuthCookie",
        path="http_cookies.secure_auth_cookie?",
        proxies=True,
        shown="false",
    )
    samesite_auth_cookie: str = setting(
        "lax",
        "SameSite Auth Cookie",
        "SameSite of session cookies: lax, or none where pages of other sites embed this one.",
        yaml="sameSiteAuthCookie",
        path="http_cookies.same_site",
        proxies=True,
        enum=("lax", "none"),
    )
    host_prefix_cookie: bool = setting(
        False,
        "__Host Prefix Cookies",
        "Prefix names of cookies with __Host-, so that no other host of the domain can set them.",
        yaml="hostPrefixCookie",
        path="http_cookies.host_prefix?",
        proxies=True,
        shown="false",
    )


@concern(HTTP)
@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """The plain listener and common response headers."""

    http_address: str = setting(
        "127.0.0.1:3000",
        "HTTP Address",
        "Address and port where plain HTTP is served, like 0.0.0.0:3000; empty serves none.",
        yaml="httpAddress",
        path="http_address",
        proxies=True,
    )
    additional_csp_policy: tuple[str, ...] = setting(
        (),
        "Additional CSP Policy",
        "Directives added to the Content-Security-Policy.",
        yaml="additionalCSPPolicy",
        path="additional_csp_policy?",
    )
    proxy_health_interval: timedelta = setting(
        timedelta(minutes=1),
        "Proxy Health Check Interval",
        "Interval of health checks of each workspace proxy, such as 1m.",
        yaml="proxyHealthInterval",
        path="proxy_health_status_interval",
        least=EVERY,
    )
    api_rate_limit: int = setting(
        512,
        "API Rate Limit",
        "Requests a minute per user or address; a negative number turns it off.",
        group=GENERAL,
        path="rate_limit.api",
        hidden=True,
        proxies=True,
    )
    dangerous_disable_rate_limits: bool = setting(
        False,
        "Disable All Rate Limits",
        "Turn all rate limits off.",
        group=GENERAL,
        path="rate_limit.disable_all",
        hidden=True,
        proxies=True,
    )
    dangerous_allow_cors_requests: bool = setting(
        False,
        "DANGEROUS: Allow all CORS requests",
        "Answer cross-origin requests.",
        group=DANGEROUS,
        path="dangerous.allow_all_cors",
        hidden=True,
        proxies=True,
    )


@concern(TLS)
@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """The TLS listener and its certificates."""

    tls_enable: bool = setting(
        False,
        "TLS Enable",
        "Serve TLS at the TLS address; requires certificates and keys.",
        yaml="enable",
        path="tls.enable",
        proxies=True,
    )
    tls_address: str = setting(
        "127.0.0.1:3443",
        "TLS Address",
        "Address and port where TLS is served, like 0.0.0.0:443.",
        yaml="address",
        path="tls.address",
        proxies=True,
    )
    tls_cert_file: tuple[str, ...] = setting(
        (),
        "TLS Certificate Files",
        "PEM files of the certificates to show, separated by commas; the leaf stands first in each.",
        yaml="certFiles",
        path="tls.cert_file",
        proxies=True,
    )
    tls_key_file: tuple[str, ...] = setting(
        (),
        "TLS Key Files",
        "PEM files of the private keys, separated by commas, in the order of the certificates.",
        yaml="keyFiles",
        path="tls.key_file",
        proxies=True,
    )
    tls_client_auth: str = setting(
        "none",
        "TLS Client Auth",
        "Client certificates: none, request, require-any, verify-if-given, require-and-verify.",
        yaml="clientAuth",
        path="tls.client_auth",
        proxies=True,
    )
    tls_client_ca_file: str = setting(
        "",
        "TLS Client CA Files",
        "PEM file of the authorities that client certificates are checked against.",
        yaml="clientCAFile",
        path="tls.client_ca_file",
        proxies=True,
    )
    tls_client_cert_file: str = setting(
        "",
        "TLS Client Cert File",
        "Refused: this server shows no certificate to services it calls.",
        yaml="clientCertFile",
        path="tls.client_cert_file",
        proxies=True,
    )
    tls_client_key_file: str = setting(
        "",
        "TLS Client Key File",
        "Refused: this server shows no certificate to services it calls.",
        yaml="clientKeyFile",
        path="tls.client_key_file",
        proxies=True,
    )
    tls_min_version: str = setting(
        "tls12",
        "TLS Minimum Version",
        "Lowest TLS version that clients may speak: tls12 or tls13.",
        yaml="minVersion",
        path="tls.min_version",
        proxies=True,
    )
    tls_ciphers: tuple[str, ...] = setting(
        (),
        "TLS Ciphers",
        "Cipher suites allowed with TLS 1.2.",
        yaml="tlsCiphers",
        path="tls.supported_ciphers",
        proxies=True,
    )
    tls_allow_insecure_ciphers: bool = setting(
        False,
        "TLS Allow Insecure Ciphers",
        "Allow ciphers known to be weak.",
        yaml="tlsAllowInsecureCiphers",
        path="tls.allow_insecure_ciphers",
        proxies=True,
        shown="false",
    )
    tls_redirect_http_to_https: bool = setting(
        True,
        "Redirect HTTP to HTTPS",
        "Deprecated: redirect-to-access-url; with TLS on it asks for the same.",
        yaml="redirectHTTP",
        path="tls.redirect_http",
        hidden=True,
        proxies=True,
        instead=("redirect-to-access-url",),
    )
    strict_transport_security: int = setting(
        0,
        "Strict-Transport-Security",
        "Seconds for which browsers must use HTTPS only (HSTS); 0 sends no header.",
        yaml="strictTransportSecurity",
        path="strict_transport_security?",
        proxies=True,
        shown="0",
    )
    strict_transport_security_options: tuple[str, ...] = setting(
        (),
        "Strict-Transport-Security Options",
        "Further directives of the HSTS header.",
        yaml="strictTransportSecurityOptions",
        path="strict_transport_security_options?",
        proxies=True,
    )
