"""Pages outside the dashboard: an application's consent, and problem pages.

They are plain HTML without scripts; everything that comes from a client or a database is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from quart import Response

# The dashboard's colours, light and dark by the user's system: these pages have no user settings.
_STYLE = (
    ":root{color-scheme:light dark;--bg:#f8f9fb;--card:#fff;--line:#d9dde5;--text:#16191f;--muted:#565e6c;"
    "--accent:#3553d9;--on:#fff}@media(prefers-color-scheme:dark){:root{--bg:#0e1014;--card:#16191f;--line:#2c313b;"
    "--text:#f2f4f8;--muted:#a5adbb;--accent:#8ea2ff;--on:#0e1014}}"
    "body{font:15px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--text);display:grid;place-items:center;"
    "min-height:100vh;margin:0}main{box-sizing:border-box;width:min(28rem,calc(100vw - 2rem));margin:1rem 0;"
    "padding:1.75rem;border:1px solid var(--line);border-radius:12px;background:var(--card);overflow-wrap:anywhere}"
    "h1{font-size:1.25rem;margin:0 0 .5rem}p,li{color:var(--muted)}ul{padding-left:1.25rem}img{height:48px}"
    "form{display:flex;flex-wrap:wrap;gap:.5rem;margin-top:1.25rem}button,a{padding:.45rem 1rem;border-radius:6px;"
    "border:1px solid var(--line);font:inherit;font-weight:500;text-decoration:none;color:inherit;background:none;"
    "cursor:pointer}button{background:var(--accent);border-color:var(--accent);color:var(--on)}"
    ":focus-visible{outline:2px solid var(--accent);outline-offset:2px}"
)


def problem(status: int, heading: str, lines: Sequence[str]) -> Response:
    """Return a page with the problem, and the way back."""
    title = escape(heading)
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return _page(title, f"<h1>{title}</h1><ul>{items}</ul><a href='/'>Back to the dashboard</a>", status)


def consent(*, app: str, icon: str, username: str, scopes: Sequence[str], csrf: str, cancel: str) -> Response:
    """Return the page for the user's consent to an application. The form posts to the page's own address."""
    name = escape(app)
    picture = f"<img src='{escape(icon, quote=True)}' alt=''>" if icon else ""
    if scopes:
        listed = "".join(f"<li>{escape(scope)}</li>" for scope in scopes)
        question = f"<p>Allow {name} to use your {escape(username)} account for:</p><ul>{listed}</ul>"
    else:
        question = f"<p>Allow {name} to have full access to your {escape(username)} account?</p>"
    body = (
        f"{picture}<h1>Authorize {name}</h1>{question}<form method='post'>"
        f"<input type='hidden' name='csrf_token' value='{escape(csrf, quote=True)}'>"
        f"<button type='submit'>Allow</button><a href='{escape(cancel, quote=True)}'>Cancel</a></form>"
    )
    return _page(f"Application {name}", body, 200)


def _page(title: str, body: str, status: int) -> Response:
    text = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><title>{title}</title>"
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
    response = Response(text, status, content_type="text/html; charset=utf-8")
    # A frame around the page could make a user press its button unknowingly.
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https: data:; frame-ancestors 'none'"
    )
    # Without a referrer, browsers also hide the origin of a form (Origin: null), and its request looks forged.
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cache-Control"] = "no-store"
    return response
