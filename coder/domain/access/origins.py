"""Whose page a browser says it asks for: what another site's page must not do with a visitor's session.

No database: workspace proxies read the same. Obeys docs/protocol/rest.md#who-asks.
"""

from __future__ import annotations

from collections.abc import Mapping

from coder.domain.foundation.web_addresses import canonical_host, host_of_origin, shares_cookies, split_untrusted


def foreign_origin(headers: Mapping[str, str], access_url: str) -> bool:
    """Does a browser say that another site's page asks? Its WebSockets would carry our cookies."""
    origin = headers.get("origin", "")
    if not origin:
        return False
    return host_of_origin(origin) not in _own_hosts(headers, access_url)


HIDDEN = "null"
"""So say pages in a sandbox, and pages that tell no referrer."""


def hides_a_stranger(site: str) -> bool:
    """Of a page whose origin is HIDDEN the browser knows better whose it is, and says so in Sec-Fetch-Site.

    Nothing said is no proof: browsers say nothing to hosts without TLS, and older ones never do.
    """
    return site not in {"same-origin", "none"}


def near_origin(headers: Mapping[str, str], access_url: str) -> bool:
    """Does a browser say that a page of another site asks that could have set cookies of ours, or hides whose it is?

    What such a page knows of our cookies proves nothing.
    """
    origin = headers.get("origin", "")
    if origin == HIDDEN:
        return hides_a_stranger(headers.get("sec-fetch-site", ""))
    host = host_of_origin(origin)
    near = not host or any(shares_cookies(host, own) for own in _own_hosts(headers, access_url))
    return near and foreign_origin(headers, access_url)


def _own_hosts(headers: Mapping[str, str], access_url: str) -> set[str]:
    """Where a page of ours may be: at the access URL, and where this request went, by the scheme of the page."""
    scheme = split_untrusted(headers.get("origin", "")).scheme
    return {canonical_host(headers.get("host", ""), scheme), host_of_origin(access_url)} - {""}
