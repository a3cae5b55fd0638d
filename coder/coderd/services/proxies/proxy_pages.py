"""What a workspace proxy copies to its visitor's browser when the application does not open: a redirect or a page.

The original's proxies pass the answer of `issue-signed-app-token` on as it is; ours ask for JSON and write their own.
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
    """An answer for a person, which the proxy does not read."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


def browser_answer(access_url: str, said: IssueTokenRequest, refused: AppRefusedError) -> BrowserAnswer:
    """The way to the sign-in page and back to the proxy, or what the application's own server would have shown."""
    if refused.reason != "sign_in":
        return _page(app_pages.refused(refused, access_url))
    back = address_on_proxy(said)
    if not back:
        return _page(app_pages.signed_out())
    query = urlencode({"redirect_uri": back}, quote_via=quote)
    where = f"{access_url}/api/v2/applications/auth-redirect?{query}"
    return BrowserAnswer(303, (("Location", where), ("Cache-Control", "no-store")))


def _page(page: app_pages.ErrorPage) -> BrowserAnswer:
    headers = tuple((name.decode(), value.decode()) for name, value in app_pages.HEADERS)
    return BrowserAnswer(page.status, headers, page.html())


def address_on_proxy(said: IssueTokenRequest) -> str:
    """Where the visitor was, at the proxy; empty for terminals, whose WebSocket follows no redirect."""
    asked, base = said.app_request, split_untrusted(said.path_app_base_url)
    if asked.access_method == "terminal" or not base.netloc:
        return ""
    host, path = base.netloc, asked.base_path
    if asked.access_method == "subdomain":
        if "*" not in said.app_hostname:
            return ""
        host = said.app_hostname.replace("*", app_label(asked), 1)
    path = "/".join(["", *(part for part in f"{path}/{said.app_path}".split("/") if part)])
    ends = said.app_path or asked.base_path
    return urlunsplit((base.scheme, host, path + ("/" if ends.endswith("/") or path == "" else ""), said.app_query, ""))


def app_label(asked: SignedAppRequest) -> str:
    """The label `parse_app_label` reads: `[prefix---]app[--agent]--workspace--user`."""
    parts = (asked.app_slug_or_port, asked.agent_name_or_id, asked.workspace_name_or_id, asked.username_or_id)
    return asked.app_prefix + "--".join(part for part in parts if part)
