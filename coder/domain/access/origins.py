"""Checks of the page that sent a request, by Origin and Sec-Fetch-Site: another site's page must not use a visitor's
session.

No database: workspace proxies read the same. Obeys docs/protocol/rest.md#authentication.
"""

from __future__ import annotations

from collections.abc import Mapping

from coder.domain.foundation.web_addresses import canonical_host, host_of_origin, shares_cookies, split_untrusted


def foreign_origin(headers: Mapping[str, str], access_url: str) -> bool:
    """Return whether the browser reports that a page of another site sent the request. Its WebSockets would carry our
    cookies."""
    origin = headers.get("origin", "")
    if not origin:
        return False
    return host_of_origin(origin) not in _own_hosts(headers, access_url)


HIDDEN = "null"
"""Origin that browsers send for sandboxed pages and pages without a referrer."""


def hides_foreign_origin(site: str) -> bool:
    """Return whether a page with a HIDDEN origin belongs to another site, according to Sec-Fetch-Site.

    A missing header is no proof: browsers do not send it to hosts without TLS, and older ones never do.
    """
    return site not in {"same-origin", "none"}


def near_origin(headers: Mapping[str, str], access_url: str) -> bool:
    """Return whether the request comes from a page of another site that could have set our cookies, or that hides its
    site.

    Such a page may know our cookies, so knowing them proves nothing.
    """
    origin = headers.get("origin", "")
    if origin == HIDDEN:
        return hides_foreign_origin(headers.get("sec-fetch-site", ""))
    host = host_of_origin(origin)
    near = not host or any(shares_cookies(host, own) for own in _own_hosts(headers, access_url))
    return near and foreign_origin(headers, access_url)


def _own_hosts(headers: Mapping[str, str], access_url: str) -> set[str]:
    """Return the hosts of our own pages: the access URL's and the one this request went to, by the scheme of the
    page."""
    scheme = split_untrusted(headers.get("origin", "")).scheme
    return {canonical_host(headers.get("host", ""), scheme), host_of_origin(access_url)} - {""}
