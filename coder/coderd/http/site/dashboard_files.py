"""The dashboard's files: hashed assets cached forever, every unknown path is the single page.

Registered last: paths without a route end here, except programs' (`coder/domain/access/machine_paths.py`).
`page_values.py` fills in the page. Not here: /bin (`binaries.py`), the pictures of /icon and /emojis (`pictures.py`).
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec
from urllib.parse import urlsplit

from quart import Blueprint, Response, request

from coder.base.version import BUILD_VERSION
from coder.coderd.http.server.auth import context
from coder.coderd.http.server.compression import accepts
from coder.coderd.http.site import pictures
from coder.coderd.http.site.page_values import fill_page
from coder.coderd.services.apps.session_handover import app_host
from coder.coderd.services.site.install_scripts import install_ps1, install_sh
from coder.domain.access.rate_budgets import unlimited
from coder.domain.apps.app_addresses import frame_source

P = ParamSpec("P")
Headers = list[tuple[str, str]]

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

blueprint = Blueprint("site", __name__)

_BUNDLED = Path(__file__).resolve().parents[3] / "dashboard"
_PICTURES = _BUNDLED / "dist/pictures.zip"
_LONGEST = 1024
"""Maximum characters of a file's path. Each of its folders is checked, for any caller, so that there must be a
bound."""
_FILES = ("assets/", *pictures.FOLDERS)
FROM_FILES = unlimited("public files, read in pieces; a fleet behind one address starts together")
_METHODS = ["GET", "HEAD"]
_PARTS = (".js", ".css", ".woff2", ".woff")
"""Suffixes of files that a browser never displays by themselves: a page's policy applies to them, and the headers of
a page would be a kilobyte for each."""
_CODINGS = {"br": ".br", "gzip": ".gz"}
"""Content codings of assets in order of preference, and the suffixes of their files."""
KNOWN_SECONDS = 1.0
"""Seconds for which a file's place is remembered; its content is read once per change."""
_Loaded = tuple[bytes, str, str]
"""Bytes, type and quoted hash of a file."""
FOREVER = "public, max-age=31536000, immutable"
_EMPTY_PAGE = "<!doctype html><html><head><title>Coder</title></head><body><p>{}</p></body></html>"
_SOURCE = re.compile(r"[A-Za-z0-9.:*\[\]-]+")
"""Host of a Content-Security-Policy."""
_PERMISSIONS = (
    "accelerometer=(), autoplay=(), battery=(), camera=(), document-domain=(), geolocation=(), gyroscope=(), "
    "magnetometer=(), microphone=(self), midi=(), payment=(), usb=(), vr=(), screen-wake-lock=(), "
    "xr-spatial-tracking=()"
)


def from_files(view: Callable[P, Awaitable[Response]]) -> Callable[P, Awaitable[Response]]:
    """Wrap views that are not routes of the API, which have declarations."""
    view.budgets = (FROM_FILES,)  # type: ignore[attr-defined]
    return view


@blueprint.route("/install.sh", methods=["GET", "HEAD"])
@from_files
async def install_script() -> Response:
    text = install_sh(context().access_url, BUILD_VERSION)
    return framed(Response(text, content_type="text/plain; charset=utf-8"))


@blueprint.route("/install.ps1", methods=["GET", "HEAD"])
@from_files
async def install_powershell() -> Response:
    text = install_ps1(context().access_url, BUILD_VERSION)
    return framed(Response(text, content_type="text/plain; charset=utf-8"))


@blueprint.route("/", defaults={"path": ""}, methods=[*_METHODS, "POST"])  # recorded: POST on the start page
@blueprint.route("/<page:path>", methods=_METHODS)
@from_files
async def page(path: str) -> Response:
    answer = answer_file(
        context(), path, request.headers.get("If-None-Match", ""), request.headers.get("Accept-Encoding", "")
    )
    if answer is None:
        return await _index()
    status, headers, body = answer
    response = Response(body, status, content_type=headers[0][1])
    response.headers.update(headers[1:])
    return response


def answer_file(ctx: Context, path: str, known_tag: str, accepted: str) -> tuple[int, Headers, bytes] | None:
    """Return status, headers (the type first) and body for a file; None for a path of the single page.

    `known_tag` is the request's If-None-Match, `accepted` its Accept-Encoding.
    """
    loaded, copies = _read(_root(ctx), path, int(time.monotonic() / KNOWN_SECONDS))
    loaded = loaded or pictures.find(_PICTURES, path)
    if loaded is None:
        if not path.startswith(_FILES):
            return None
        # The dashboard has no page below these folders.
        kind = [("Content-Type", "text/plain; charset=utf-8")]
        return 404, kind + frame_headers(ctx), b"404 page not found\n"
    data, kind_of_file, tag = loaded
    coding = next((coding for coding in copies if accepts(accepted, coding)), "") if copies else None
    if coding:
        data, _, tag = copies[coding]
    varies = [] if coding is None else [("Vary", "Accept-Encoding")]
    if known_tag == tag:
        return 304, [("Content-Type", "text/html; charset=utf-8"), ("ETag", tag), *varies, *frame_headers(ctx)], b""
    cached = FOREVER if "/assets/" in f"/{path}" else "no-cache"
    headers = [("Content-Type", kind_of_file), ("ETag", tag), ("Cache-Control", cached), *varies]
    if coding:
        headers.append(("Content-Encoding", coding))
    return 200, headers if path.endswith(_PARTS) else headers + frame_headers(ctx), data


@lru_cache(maxsize=512)
def _read(root: Path, path: str, _period: int) -> tuple[_Loaded | None, dict[str, _Loaded]]:
    """Return a file below `root`, and its compressed copies by coding.

    The build writes the copies of scripts and styles, whose names change with their content. Finding a file takes
    longer than the rest of its response.
    """
    result = _find(root, path)
    if result is None:
        return None, {}
    copies = {}
    for coding, suffix in _CODINGS.items() if path.startswith("assets/") else ():
        copy = result.with_name(result.name + suffix)
        if copy.is_file():
            copies[coding] = _load(str(copy), copy.stat().st_mtime_ns)
    return _load(str(result), result.stat().st_mtime_ns), copies


def _root(ctx: Context) -> Path:
    chosen = ctx.config.site_dir
    return Path(chosen) if chosen else _BUNDLED / "dist"


def _find(root: Path, path: str) -> Path | None:
    """Return a file below `root`; never one outside of it."""
    if not path or "\x00" in path or len(path) > _LONGEST:
        return None
    try:
        target = (root / path).resolve()
        if target.is_relative_to(root.resolve()) and target.name != "index.html" and target.is_file():
            return target
    except (OSError, ValueError):
        pass  # a name that no file can have
    return None


@lru_cache(maxsize=256)
def _load(path: str, _changed: int) -> _Loaded:
    """Return (bytes, type, quoted hash) of a file; read once per change."""
    data = Path(path).read_bytes()
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind in {"application/javascript", "image/svg+xml"}:
        kind += "; charset=utf-8"
    return data, kind, f'"{hashlib.sha1(data, usedforsecurity=False).hexdigest()}"'


async def _index() -> Response:
    index = _root(context()) / "index.html"
    if not index.is_file():
        text = _EMPTY_PAGE.format("The dashboard is not built. Run npm install && npm run build in coder/dashboard.")
        return framed(Response(text, content_type="text/html; charset=utf-8"))
    page, _, _ = _load(str(index), index.stat().st_mtime_ns)
    text = await fill_page(page.decode())
    response = Response(text, content_type="text/html; charset=utf-8")
    response.headers["Cache-Control"] = "no-cache"
    return framed(response)


def framed(response: Response) -> Response:
    """Add the headers of every response that a browser displays."""
    for name, value in frame_headers(context()):
        response.headers[name] = value
    return response


def frame_headers(ctx: Context) -> Headers:
    """Return the headers of every response that a browser displays."""
    config = ctx.config
    return _frame_headers(
        ctx.access_url,
        frame_source(app_host(ctx)),
        *_proxy_sources(ctx),
        tuple(config.additional_csp_policy),
        config.strict_transport_security,
        tuple(config.strict_transport_security_options),
    )[:]


@lru_cache(maxsize=16)
def _frame_headers(
    access_url: str,
    wildcard: str,
    proxies: tuple[str, ...],
    framed_proxies: tuple[str, ...],
    extra_policy: tuple[str, ...],
    secure_seconds: int,
    secure_options: tuple[str, ...],
) -> Headers:
    # The same until an administrator or a proxy changes, and requested with each of a page's fifty files.
    headers = [
        ("Content-Security-Policy", _policy(access_url, wildcard, proxies, framed_proxies, extra_policy)),
        ("Permissions-Policy", _PERMISSIONS),
        ("Referrer-Policy", "no-referrer"),
        ("Accept-Ranges", "bytes"),
    ]
    if secure_seconds > 0:
        options = "".join(f"; {option}" for option in secure_options)
        headers.append(("Strict-Transport-Security", f"max-age={secure_seconds}{options}"))
    return headers


def _proxy_sources(ctx: Context) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the sources a page may connect to and frame besides this server: the selectable workspace proxies, for
    terminals, latency and applications. Proxies register their addresses: a text that is more than an address would add
    directives of its own.
    """
    connected, framed_too = list[str](), list[str]()
    for row in ctx.services.api.proxy_health.healthy_proxies():
        url = urlsplit(row.url)
        if row.derp_only or not _SOURCE.fullmatch(url.netloc):
            continue
        connected += [f"{url.scheme}://{url.netloc}", f"{'wss' if url.scheme == 'https' else 'ws'}://{url.netloc}"]
        wildcard = frame_source(row.wildcard_hostname)
        framed_too += [url.netloc, *([wildcard] if _SOURCE.fullmatch(wildcard) else [])]
    return tuple(connected), tuple(framed_too)


def _policy(
    access_url: str,
    wildcard: str,
    proxies: tuple[str, ...],
    framed_proxies: tuple[str, ...],
    extra_policy: tuple[str, ...],
) -> str:
    host = urlsplit(access_url).netloc
    frames = " ".join(["'self'", host, *([wildcard] if wildcard else []), *framed_proxies])
    directives = {
        "default-src": "'self'",
        "child-src": "'self'",
        "connect-src": " ".join([f"'self' wss://{host} ws://{host} https://{host} {access_url}", *proxies]),
        "font-src": "'self' data:",
        "form-action": "'self'",
        "frame-ancestors": "'self'",
        "frame-src": frames,
        "img-src": "'self' https: data: blob:",
        "manifest-src": "'self' blob:",
        "media-src": "'self'",
        "object-src": "'self'",
        "report-uri": "/api/v2/csp/reports",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",
        "worker-src": "'self' blob:",
    }
    extra = "".join(f"; {directive}" for directive in extra_policy)
    return "; ".join(f"{name} {value}" for name, value in directives.items()) + extra
