"""Check of the path's objects before the body: a request about a missing object gets that refusal, whatever is wrong
with its body.

Views look up their objects after reading the body, which saves a query for valid requests; so this runs only when the
body is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from uuid import UUID

from quart import request

from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.query import path_uuid
from coder.coderd.services.access.workspace_access import load_template, load_workspace
from coder.coderd.services.templates.versions.loaded_versions import load_version
from coder.coderd.services.workspaces.builds.builds import load_build

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.domain.access.policy import Subject

_FIND: dict[str, tuple[str, Callable[[Context, Subject, UUID], Awaitable[object]]]] = {
    "/api/v2/workspaces/<id:workspace>": ("workspace", load_workspace),
    "/api/v2/templates/<id:template>": ("template", load_template),
    "/api/v2/templateversions/<id:version>": ("version", load_version),
    "/api/v2/workspacebuilds/<id:build>": ("build", load_build),
}
"""Beginning of a path -> the object it names, and its lookup. Raises NotFound when the caller may not know of it."""


async def require_path_objects() -> None:
    """Require the path's objects. Raises Invalid (a malformed id), NotFound."""
    rule = request.url_rule.rule if request.url_rule is not None else ""
    for beginning, (name, find) in _FIND.items():
        if rule.startswith(beginning):
            await find(context(), subject(), path_uuid((request.view_args or {})[name]))
