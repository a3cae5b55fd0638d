"""The audit log and the connection log."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.audit.audit import AuditLogResponse, ConnectionLogResponse, CreateTestAuditLogRequest
from coder.coderd.http.server.audited import origin
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.declarations import search
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query
from coder.coderd.http.server.route import route
from coder.coderd.services.audit import audit, audit_search, connection_log

blueprint = Blueprint("audit", __name__, url_prefix="/api/v2")


@route(
    blueprint,
    "GET",
    "/audit",
    scope="audit_log:read",
    query={
        "limit": int,
        "offset": int,
        "q": search(
            "action build_reason date_from date_to email organization request_id resource_id "
            "resource_target resource_type username"
        ),
    },
    answers=AuditLogResponse,
    compressed=True,
)
async def get_audit() -> Response:
    """Return audit entries, newest first."""
    query = Query()
    page = query.page()
    query.check()
    return reply(
        await audit_search.list_entries(context(), subject(), query.text("q"), limit=page.limit, offset=page.offset)
    )


@route(blueprint, "POST", "/audit/testgenerate", scope="audit_log:create", body=CreateTestAuditLogRequest, status=204)
async def post_test_entry() -> Response:
    """Insert an entry composed by the caller."""
    body = await read_body(CreateTestAuditLogRequest)
    await audit.generate_test(context(), subject(), origin(), body)
    return no_content()


@route(
    blueprint,
    "GET",
    "/connectionlog",
    scope="connection_log:read",
    query={
        "limit": int,
        "offset": int,
        "q": search(
            "connected_after connected_before connection_id organization search status type "
            "user_email username workspace_id workspace_owner workspace_owner_email"
        ),
    },
    answers=ConnectionLogResponse,
    compressed=True,
)
async def get_connection_log() -> Response:
    """Return connections, newest first."""
    query = Query()
    page = query.page()
    query.check()
    return reply(
        await connection_log.list_connections(
            context(), subject(), query.text("q"), limit=page.limit, offset=page.offset
        )
    )
