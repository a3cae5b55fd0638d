"""Pages a person sees outside the dashboard: an application's question, and why something cannot go on.

They are plain HTML without scripts; everything that comes from a client or a database is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from quart import Response

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;background:#09090b;color:#fafafa;display:grid;place-items:center;"
    "min-height:100vh;margin:0}main{max-width:28rem;padding:2rem;text-align:center}h1{font-size:1.4rem}"
    "p,li{color:#a1a1aa}ul{text-align:left}img{height:64px}form{display:flex;gap:1rem;justify-content:center}"
    "button,a{padding:.6rem 1.4rem;border-radius:6px;border:1px solid #3f3f46;font:inherit;text-decoration:none;"
    "color:inherit;background:none;cursor:pointer}button{background:#fafafa;color:#09090b}"
)


def problem(status: int, heading: str, lines: Sequence[str]) -> Response:
    """Why it does not go on, and the way back."""
    title = escape(heading)
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return _page(title, f"<h1>{title}</h1><ul>{items}</ul><a href='/'>Back to the dashboard</a>", status)


def consent(*, app: str, icon: str, username: str, scopes: Sequence[str], csrf: str, cancel: str) -> Response:
    """Asks the person to let the application in. The form posts to the very address of the page."""
    name = escape(app)
    picture = f"<img src='{escape(icon, quote=True)}' alt=''>" if icon else ""
    if scopes:
        listed = "".join(f"<li>{escape(scope)}</li>" for scope in scopes)
        what = f"<p>Allow {name} to use your {escape(username)} account for:</p><ul>{listed}</ul>"
    else:
        what = f"<p>Allow {name} to have full access to your {escape(username)} account?</p>"
    body = (
        f"{picture}<h1>Authorize {name}</h1>{what}<form method='post'>"
        f"<input type='hidden' name='csrf_token' value='{escape(csrf, quote=True)}'>"
        f"<button type='submit'>Allow</button><a href='{escape(cancel, quote=True)}'>Cancel</a></form>"
    )
    return _page(f"Application {name}", body, 200)


def _page(title: str, body: str, status: int) -> Response:
    text = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<style>{_STYLE}</style></head><body><main>{body}</main></body></html>"
    )
    response = Response(text, status, content_type="text/html; charset=utf-8")
    # A frame around the question could make a person press its button unknowingly.
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' https: data:; frame-ancestors 'none'"
    )
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response
