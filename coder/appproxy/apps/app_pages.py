"""Pages for users when an application does not open: the problem, its cause, and the next step.

Plain HTML without scripts; everything that comes from a client or a database is escaped. Titles and headings are
upstream's (`404 - Application Not Found`), as clients and users know them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from coder.appproxy.apps.app_refusals import AppRefusedError

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;background:#09090b;color:#fafafa;display:grid;place-items:center;"
    "min-height:100vh;margin:0}main{max-width:34rem;padding:2rem;text-align:center}h1{font-size:1.4rem}"
    "p{color:#a1a1aa}code{color:#fafafa}nav{display:flex;gap:1rem;justify-content:center;margin-top:1.5rem}"
    "a{padding:.6rem 1.4rem;border-radius:6px;border:1px solid #3f3f46;text-decoration:none;color:inherit}"
)
_RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """Page for a user."""

    status: int
    title: str
    what: str
    why: str = ""
    links: tuple[tuple[str, str], ...] = ()
    """Address and text of each link."""
    retry: bool = False
    """Whether the page reloads itself, because waiting may help."""

    def html(self) -> bytes:
        heading = escape(f"{self.status} - {self.title}")
        links = "".join(f'<a href="{escape(address, quote=True)}">{escape(words)}</a>' for address, words in self.links)
        refresh = f'<meta http-equiv="refresh" content="{_RETRY_SECONDS}">' if self.retry else ""
        why = f"<p>{escape(self.why)}</p>" if self.why else ""
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">{refresh}<title>{heading}</title>'
            f"<style>{_STYLE}</style></head><body><main><h1>{heading}</h1><p>{escape(self.what)}</p>{why}"
            f"<nav>{links}</nav></main></body></html>"
        ).encode()


HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Headers of every page here."""


def refused(error: AppRefusedError, dashboard: str) -> ErrorPage:
    """Return the page of a refusal other than `sign_in`. `dashboard` is the access URL."""
    home = (dashboard + "/", "Back to the dashboard")
    spot = error.spot
    workspace = (dashboard + spot.workspace_path, "Open the workspace") if spot else home
    match error.reason:
        case "path_apps_off":
            return ErrorPage(
                403,
                "Forbidden",
                "Path-based applications are disabled.",
                "This deployment serves applications only on separate hosts (a wildcard access URL).",
                (home,),
            )
        case "port_by_path":
            return ErrorPage(
                500,
                "Internal Server Error",
                "Ports cannot be opened under a path.",
                "A port requires a separate host, PORT--AGENT--WORKSPACE--USER below the wildcard access URL. "
                "`coder port-forward` reaches it without one.",
                (home,),
            )
        case "reserved_port":
            heading = "This port belongs to the agent."
            return ErrorPage(400, "Bad Request", heading, "Ports below 9 are never proxied.", (home,))
        case "not_web":
            return _not_web(error, workspace)
        case "workspace_offline" | "workspace_dormant":
            return _offline(error, dashboard, home)
        case "agent_offline":
            return _agent_offline(error, workspace)
        case "primary_away":
            return _primary_away(error, home)
    return ErrorPage(
        404,
        "Application Not Found",
        "The application or workspace you are trying to access does not exist or you do not have permission to "
        "access it.",
        "Check the address. If it is another user's workspace, its owner can share the application.",
        (home,),
    )


def _primary_away(error: AppRefusedError, home: tuple[str, str]) -> ErrorPage:
    return ErrorPage(
        502,
        "Bad Gateway",
        "This workspace proxy could not ask its server whether you may open the application.",
        f"{error.detail} Its administrator finds more in the proxy's log.",
        (home,),
        retry=True,
    )


def _not_web(error: AppRefusedError, workspace: tuple[str, str]) -> ErrorPage:
    if error.detail == "external" and error.spot:
        return ErrorPage(
            400,
            "Bad Request",
            "This application is a link to a place outside of the workspace.",
            f"It leads to {error.spot.external_url}. Open it from the workspace's page.",
            (workspace,),
        )
    return ErrorPage(
        400,
        "Bad Request",
        "This application is a command, not a page.",
        "It opens in a terminal from the workspace's page.",
        (workspace,),
    )


def _offline(error: AppRefusedError, dashboard: str, home: tuple[str, str]) -> ErrorPage:
    spot = error.spot
    if spot is None:
        return ErrorPage(400, "Workspace Offline", "The workspace is not running.", "", (home,))
    name = spot.workspace
    start = (dashboard + spot.workspace_path, "Start the workspace")
    if error.reason == "workspace_dormant":
        why = "It was not used for a long time and sleeps. Activate it on its page, then start it."
        return ErrorPage(400, "Workspace Offline", f"The workspace {name} is dormant.", why, (start, home))
    if error.detail in {"pending", "running", "starting"}:
        return ErrorPage(400, "Workspace Offline", f"The workspace {name} is starting.", "", (start, home), retry=True)
    why = f"Its last build left it {error.detail}. Start it on its page, or by `coder start {name}`."
    return ErrorPage(400, "Workspace Offline", f"The workspace {name} is not running.", why, (start, home))


_AGENT_STATES = {
    "connecting": "It has not connected yet: the machine may still be starting.",
    "timeout": "It should have connected by now. See its logs, and whether the machine reaches this server.",
    "disconnected": "It was connected and is not any more: the machine may be off, or its network broken.",
}


def _agent_offline(error: AppRefusedError, workspace: tuple[str, str]) -> ErrorPage:
    name = error.spot.agent if error.spot else ""
    heading = f'The agent {name} of this workspace is not connected (its state is "{error.detail}").'
    return ErrorPage(502, "Bad Gateway", heading, _AGENT_STATES.get(error.detail, ""), (workspace,), retry=True)


def unreachable(port: int, dashboard: str) -> ErrorPage:
    """Return the page for a connected agent without a listener on the port."""
    return ErrorPage(
        502,
        "Bad Gateway",
        "Failed to proxy request to application: it does not answer.",
        f"Nothing listens on port {port} of the workspace, or the agent cannot be reached just now. Start the "
        "application in the workspace and see that it listens on localhost.",
        ((dashboard + "/", "Back to the dashboard"),),
        retry=True,
    )


def broken_answer(dashboard: str) -> ErrorPage:
    return ErrorPage(
        502,
        "Bad Gateway",
        "Failed to proxy request to application: its answer is no HTTP.",
        "The application ended the connection early or speaks another protocol. A port that speaks TLS is opened with "
        "an `s` behind its number.",
        ((dashboard + "/", "Back to the dashboard"),),
    )


def bad_host(dashboard: str) -> ErrorPage:
    return ErrorPage(
        400,
        "Invalid Application URL",
        "This host names no application.",
        "Hosts of applications are written SLUG--WORKSPACE--USER or PORT--AGENT--WORKSPACE--USER below the wildcard.",
        ((dashboard + "/", "Back to the dashboard"),),
    )


def foreign_origin(dashboard: str) -> ErrorPage:
    return ErrorPage(
        403,
        "Forbidden",
        "A page of another site asked for this with your session.",
        "Applications accept that only from their own owner's applications. The template may allow it "
        "(cors_behavior passthru).",
        ((dashboard + "/", "Back to the dashboard"),),
    )


def internal(dashboard: str) -> ErrorPage:
    return ErrorPage(
        500,
        "Internal Server Error",
        "This server failed while opening the application.",
        "Its log says more. Trying again may help.",
        ((dashboard + "/", "Back to the dashboard"),),
    )


def too_many(words: str, dashboard: str) -> ErrorPage:
    """Return the page for a rate limit; `words` name the limited thing."""
    return ErrorPage(
        429,
        "Too Many Requests",
        words,
        "Each opening of an application counts. A browser opens one once a minute; programs should keep cookies.",
        ((dashboard + "/", "Back to the dashboard"),),
        retry=True,
    )


def signed_out() -> ErrorPage:
    """Return the page for requests that cannot follow a redirect: a WebSocket of a page whose session ended."""
    return ErrorPage(
        401, "Unauthorized", "You are signed out or your session has expired.", "Reload the page to sign in."
    )
