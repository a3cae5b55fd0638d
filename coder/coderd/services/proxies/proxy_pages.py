"""Answers that a workspace proxy copies to a visitor's browser when an application does not open: redirect or page.

The original's proxies forward the answer of `issue-signed-app-token` unchanged; ours ask for JSON and write their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlunsplit

from coder.api.proxies.proxies import IssueTokenRequest, SignedAppRequest
from coder.appproxy.apps import app_pages
from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.domain.foundation.web_addresses import split_untrusted


@dataclass(frozen=True, slots=True)
class BrowserAnswer:
    """An answer for the visitor's browser, which the proxy does not read."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


def browser_answer(access_url: str, body: IssueTokenRequest, refused: AppRefusedError) -> BrowserAnswer:
    """Return a redirect to the sign-in page and back to the proxy, or the page that the server itself would show."""
    if refused.reason != "sign_in":
        return _page(app_pages.refused(refused, access_url))
    back = address_on_proxy(body)
    if not back:
        return _page(app_pages.signed_out())
    query = urlencode({"redirect_uri": back}, quote_via=quote)
    location = f"{access_url}/api/v2/applications/auth-redirect?{query}"
    return BrowserAnswer(303, (("Location", location), ("Cache-Control", "no-store")))


def _page(page: app_pages.ErrorPage) -> BrowserAnswer:
    headers = tuple((name.decode(), value.decode()) for name, value in app_pages.HEADERS)
    return BrowserAnswer(page.status, headers, page.html())


def address_on_proxy(body: IssueTokenRequest) -> str:
    """Return the visitor's URL at the proxy; empty for terminals, whose WebSocket follows no redirect."""
    app_request, base = body.app_request, split_untrusted(body.path_app_base_url)
    if app_request.access_method == "terminal" or not base.netloc:
        return ""
    host, path = base.netloc, app_request.base_path
    if app_request.access_method == "subdomain":
        if "*" not in body.app_hostname:
            return ""
        host = body.app_hostname.replace("*", app_label(app_request), 1)
    path = "/".join(["", *(part for part in f"{path}/{body.app_path}".split("/") if part)])
    ends = body.app_path or app_request.base_path
    return urlunsplit((base.scheme, host, path + ("/" if ends.endswith("/") or path == "" else ""), body.app_query, ""))


def app_label(app_request: SignedAppRequest) -> str:
    """Return the label that `parse_app_label` reads: `[prefix---]app[--agent]--workspace--user`."""
    parts = (
        app_request.app_slug_or_port,
        app_request.agent_name_or_id,
        app_request.workspace_name_or_id,
        app_request.username_or_id,
    )
    return app_request.app_prefix + "--".join(part for part in parts if part)
