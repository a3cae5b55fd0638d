"""Values that a page needs first, inserted as `<meta property="…" content="…">`.

The names are documented, so that another single-page application in `--site-dir` can rely on them: csrf-token,
build-info, user, entitlements, appearance, userAppearance, experiments, regions, docs-url, logo-url, ai-tasks-enabled,
ai-gateway-enabled, permissions, organizations. An existing tag is filled in place, the others are added to the head.
Each holds JSON or is empty: then the page queries the API. A signed-out visitor gets the public ones. tasks-tab-visible
and application-name also serve pages written for the original, whose placeholders (`{{ .Name }}`) are filled at every
position; none is left as text. web-terminal-renderer is ours: the deployment's configuration, where the original's
terminal reads it, is for administrators alone.

permissions is always empty: it would hold the results of the page's own permission checks, by the page's names for
them, which only the page knows. A missing result would be read as a denial.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

from quart import request

from coder.api.base import codec
from coder.coderd.config.experiments import served_experiments
from coder.coderd.http.server.auth import context, optional_caller
from coder.coderd.http.site.health_and_version import build_info
from coder.coderd.services.people import members, organizations, user_settings, user_views
from coder.coderd.services.proxies import workspace_proxies
from coder.coderd.services.site import deployment

if TYPE_CHECKING:
    from coder.coderd.services.access.authentication import Caller
    from coder.coderd.services.foundation.context import Context

NAMES = (
    "csrf-token build-info user entitlements appearance userAppearance experiments regions docs-url logo-url "
    "ai-tasks-enabled tasks-tab-visible ai-gateway-enabled application-name web-terminal-renderer permissions "
    "organizations"
).split()
_META = re.compile(r"<meta\b[^>]*?\bproperty\s*=\s*([\"']?)([A-Za-z:-]+)\1[^>]*>", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{-?\s*\.([A-Za-z.]+)\s*-?\}\}")


def _letters(name: str) -> str:
    """Normalize a name: `csrf-token` and `.CSRF.Token` are equal."""
    return re.sub(r"[^a-z]", "", name.lower())


async def fill_page(page: str) -> str:
    """Return `page` with the values of the current request in it."""
    values = await _values(context())
    present = set()

    def put(match: re.Match[str]) -> str:
        name = match[2]
        if name not in values:
            return match[0]
        present.add(name)
        return _tag(name, values[name])

    def fill(match: re.Match[str]) -> str:
        return html.escape(by_letters.get(_letters(match[1]), ""), quote=True)

    by_letters = {_letters(name): value for name, value in values.items()}
    page = _PLACEHOLDER.sub(fill, _META.sub(put, page))
    added = "".join(_tag(name, value) for name, value in values.items() if name not in present)
    head, mark, rest = page.partition("</head>")
    return f"{head}{added}{mark}{rest}" if mark else page


def _tag(name: str, value: str) -> str:
    """Return the tag, with the quotes that JSON does not contain: each of the others would be six bytes."""
    text = html.escape(value, quote=False).replace("'", "&#39;")
    return f"<meta property=\"{name}\" content='{text}' />"


async def _values(ctx: Context) -> dict[str, str]:
    values: dict[str, Any] = dict.fromkeys(NAMES, "")
    appearance = await deployment.appearance(ctx)
    values |= {
        "csrf-token": request.cookies.get("csrf_token") or str(request.scope.get("coder_csrf", "")),
        "build-info": build_info(ctx),
        "docs-url": appearance.docs_url,
        "logo-url": appearance.logo_url,
        "application-name": appearance.application_name or "Coder",
        "web-terminal-renderer": ctx.config.web_terminal_renderer,
        "ai-tasks-enabled": not ctx.config.hide_ai_tasks,
        "tasks-tab-visible": not ctx.config.hide_ai_tasks,
        "ai-gateway-enabled": False,
    }
    caller = await optional_caller() if "coder_session_token" in request.cookies else None
    if caller is not None:
        values["appearance"] = appearance
        values |= await _of_caller(ctx, caller)
    return {name: value if isinstance(value, str) else codec.encode(value).decode() for name, value in values.items()}


async def _of_caller(ctx: Context, caller: Caller) -> dict[str, Any]:
    own = await members.organizations_of(ctx, caller.subject, caller.user.id)
    return {
        "user": user_views.user_view(caller.user),
        "userAppearance": await user_settings.get_appearance(ctx, caller.user.id),
        "entitlements": await deployment.entitlements(ctx),
        "experiments": list(served_experiments(ctx.config)),
        "regions": {"regions": await workspace_proxies.list_regions(ctx)},
        "organizations": [organizations.organization_view(row) for row in own],
    }
