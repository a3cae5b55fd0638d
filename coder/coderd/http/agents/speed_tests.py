"""Speed tests of a page, leg by leg: browser to server, and server to agent. Ours, not upstream's."""

from __future__ import annotations

from quart import Blueprint, Response

from coder.api.agents.speed_tests import SpeedTestRequest, SpeedTestResult
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.body_reading import read_bytes
from coder.coderd.http.server.declarations import BYTES, OCTETS
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import Query, path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.agents import speed_tests
from coder.coderd.services.agents.speed_tests import MAX_PAYLOAD
from coder.domain.access.rate_budgets import SPEED_TESTS

blueprint = Blueprint("speed_tests", __name__, url_prefix="/api/v2/workspaceagents")


@route(
    blueprint,
    "POST",
    "/<id:agent>/speedtest",
    scope="workspace:ssh",
    body=SpeedTestRequest,
    required=("direction",),
    answers=SpeedTestResult,
    refuses=(409, 502),
    budget=SPEED_TESTS,
)
async def post_test(agent: str) -> Response:
    """Measure the throughput between server and agent for three seconds, at most 32 MiB."""
    await speed_tests.require_right(context(), subject(), path_uuid(agent))
    body = await read_body(SpeedTestRequest)
    return reply(await speed_tests.run_test(context(), subject(), path_uuid(agent), body.direction))


@route(
    blueprint,
    "GET",
    "/<id:agent>/speedtest/payload",
    scope="workspace:ssh",
    query={"bytes": int},
    answers=BYTES,
    budget=SPEED_TESTS,
)
async def get_payload(agent: str) -> Response:
    """Return `bytes` random bytes, at most 8 MiB, so that a browser measures its download."""
    query = Query()
    query.only("bytes")
    count = query.positive("bytes")
    query.check()
    body = await speed_tests.make_payload(context(), subject(), path_uuid(agent), count)
    return Response(body, 200, {"Cache-Control": "no-store"}, content_type=OCTETS)


@route(
    blueprint,
    "POST",
    "/<id:agent>/speedtest/payload",
    scope="workspace:ssh",
    takes=OCTETS,
    limit=MAX_PAYLOAD,
    status=204,
    budget=SPEED_TESTS,
)
async def post_payload(agent: str) -> Response:
    """Read and discard at most 8 MiB, so that a browser measures its upload."""
    await speed_tests.require_right(context(), subject(), path_uuid(agent))
    await read_bytes(MAX_PAYLOAD)
    return no_content()
