"""What the path names comes before the body: who asks about something that is not there hears that, whatever else is
wrong with the request.

Views find their objects when they have read the body, which costs one query less where all is well; so this is asked
only where the body is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quart import request

from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.query import path_uuid
from coder.coderd.services.access.workspace_access import load_template, load_workspace
from coder.coderd.services.templates.versions.loaded_versions import load_version
from coder.coderd.services.workspaces.builds.builds import load_build

_FIND: dict[str, tuple[str, Callable[..., Awaitable[object]]]] = {
    "/api/v2/workspaces/<id:workspace>": ("workspace", load_workspace),
    "/api/v2/templates/<id:template>": ("template", load_template),
    "/api/v2/templateversions/<id:version>": ("version", load_version),
    "/api/v2/workspacebuilds/<id:build>": ("build", load_build),
}
"""Beginning of a path -> what it names, and who finds it. Raises NotFound when the caller may not know of it."""


async def require_path_objects() -> None:
    """Raises Invalid (a malformed id), NotFound."""
    rule = request.url_rule.rule if request.url_rule is not None else ""
    for beginning, (name, find) in _FIND.items():
        if rule.startswith(beginning):
            await find(context(), subject(), path_uuid((request.view_args or {})[name]))
