"""What happened: the audit log and the connection log."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.audit import CreateTestAuditLogRequest
from coder.coderd.http.audited import origin
from coder.coderd.http.auth import authenticated, context, subject
from coder.coderd.http.json import no_content, read_body, reply
from coder.coderd.http.query import Query
from coder.coderd.services import audit, connection_log

blueprint = Blueprint("audit", __name__, url_prefix="/api/v2")


@blueprint.get("/audit")
@authenticated
async def get_audit() -> Response:
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    return reply(await audit.list_entries(context(), subject(), query.text("q"), limit=limit, offset=offset))


@blueprint.post("/audit/testgenerate")
@authenticated
async def post_test_entry() -> Response:
    body = await read_body(CreateTestAuditLogRequest)
    await audit.generate_test(context(), subject(), origin(), body)
    return no_content()


@blueprint.get("/connectionlog")
@authenticated
async def get_connection_log() -> Response:
    query = Query()
    limit, offset = query.positive("limit"), query.positive("offset")
    query.check()
    return reply(
        await connection_log.list_connections(context(), subject(), query.text("q"), limit=limit, offset=offset)
    )
