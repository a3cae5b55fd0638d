"""Provisioner jobs, daemons and keys. The daemons' own link is `rpc_endpoints/provisioners.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta

from quart import Blueprint, Response, request

from coder.api.base.refusals import Invalid
from coder.api.provisioning.job_reasons import ParkProvisionerJobRequest, ProvisionerJobWhy
from coder.api.provisioning.jobs import ProvisionerJob
from coder.api.provisioning.provisioner_keys import (
    CreateProvisionerKeyRequest,
    CreateProvisionerKeyResponse,
    ProvisionerKey,
    ProvisionerKeyDaemons,
)
from coder.api.provisioning.provisioners import ProvisionerDaemon, ProvisionerDaemonHealth
from coder.appproxy.http.rate_limits import counted
from coder.base.duration import parse_duration
from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.coderd.http.server.audit_rules import Audited
from coder.coderd.http.server.auth import context, count_request, subject
from coder.coderd.http.server.json import no_content, read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.people.organizations import resolve_organization
from coder.coderd.services.people.users import find_person
from coder.coderd.services.provisioning import daemon_health, job_lists, job_reasons, provisioner_keys, provisioners
from coder.coderd.services.provisioning.job_lists import JobFilter
from coder.coderd.services.provisioning.provisioners import DaemonFilter
from coder.domain.access.rate_budgets import PUBLIC_ROUTE
from coder.domain.access.route_scopes import PROVISIONER
from coder.domain.foundation.go_json import explain_rest, explain_type
from coder.domain.foundation.search import Terms, positive_fault
from coder.domain.provisioning.jobs import STATUSES
from coder.domain.provisioning.provisioners import DAEMON_STATUSES

blueprint = Blueprint("provisioners", __name__, url_prefix="/api/v2")

_LIMIT = 50


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerjobs",
    scope="provisioner_jobs:read",
    query={"ids": str, "initiator": str, "limit": str, "status": str, "tags": str},
    answers=list[ProvisionerJob],
    compressed=True,
)
async def get_jobs(organization: str) -> Response:
    """Return jobs, newest first."""
    row = await resolve_organization(context(), subject(), organization)
    terms = _terms()
    initiator = terms.one("initiator")
    which = JobFilter(
        ids=terms.uuids("ids"),
        statuses=terms.choices("status", (*STATUSES, "unknown")),
        tags=_tags(terms),
        limit=_limit(terms),
    )
    _check(terms)
    if initiator:
        person = await find_person(context(), subject(), initiator)
        which = JobFilter(which.ids, which.statuses, which.tags, person.id, which.limit)
    return reply(await job_lists.list_jobs(context(), subject(), row.id, which))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerjobs/<id:job>",
    scope="provisioner_jobs:read",
    answers=ProvisionerJob,
)
async def get_job(organization: str, job: str) -> Response:
    row = await resolve_organization(context(), subject(), organization)
    return reply(await job_lists.get_job(context(), subject(), row.id, path_uuid(job)))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerjobs/<id:job>/why",
    scope="provisioner_jobs:read",
    answers=ProvisionerJobWhy,
)
async def get_job_why(organization: str, job: str) -> Response:
    """Return why a job is pending (ours)."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await job_reasons.explain_job(context(), subject(), row.id, path_uuid(job)))


@route(
    blueprint,
    "PUT",
    "/organizations/<organization>/provisionerjobs/<id:job>/parked",
    scope="provisioner_jobs:update",
    body=ParkProvisionerJobRequest,
    status=204,
    audit=Audited("workspace_build", "write", "path:1"),
)
async def put_job_parked(organization: str, job: str) -> Response:
    """Park a job, which then waits for its daemon without limit (ours)."""
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(ParkProvisionerJobRequest)
    await job_reasons.park_job(context(), subject(), row.id, path_uuid(job), parked=body.parked)
    return no_content()


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerdaemons",
    scope="provisioner_daemon:read",
    query={"ids": str, "limit": str, "max_age": str, "offline": str, "status": str, "tags": str},
    answers=list[ProvisionerDaemon],
    compressed=True,
)
async def get_daemons(organization: str) -> Response:
    """Return daemons, oldest first."""
    row = await resolve_organization(context(), subject(), organization)
    terms = _terms()
    which = DaemonFilter(
        limit=_limit(terms),
        ids=terms.uuids("ids"),
        tags=_tags(terms),
        offline=bool(terms.boolean("offline")),
        statuses=terms.choices("status", DAEMON_STATUSES),
        max_age=_max_age(terms),
    )
    _check(terms)
    return reply(await provisioners.list_daemons(context(), subject(), row.id, which))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerdaemons/health",
    scope="provisioner_daemon:read",
    answers=list[ProvisionerDaemonHealth],
)
async def get_daemon_health(organization: str) -> Response:
    """Return status, version and load of every daemon's machine, measured over the mesh (ours)."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await daemon_health.list_health(context(), subject(), row.id))


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerkeys",
    scope="provisioner_daemon:read",
    answers=list[ProvisionerKey],
)
async def get_keys(organization: str) -> Response:
    """Return keys, oldest first."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await provisioner_keys.list_keys(context(), subject(), row.id))


@route(
    blueprint,
    "POST",
    "/organizations/<organization>/provisionerkeys",
    scope="provisioner_daemon:create",
    body=CreateProvisionerKeyRequest,
    answers=CreateProvisionerKeyResponse,
    status=201,
    refuses=(409,),
    audit=Audited("organization", "write"),
)
async def post_key(organization: str) -> Response:
    """Create a key and return its secret, which is never shown again."""
    row = await resolve_organization(context(), subject(), organization)
    body = await read_body(CreateProvisionerKeyRequest)
    secret = await provisioner_keys.create_key(context(), subject(), row.id, body)
    return reply(CreateProvisionerKeyResponse(key=secret), 201)


@route(
    blueprint,
    "GET",
    "/organizations/<organization>/provisionerkeys/daemons",
    scope="provisioner_daemon:read",
    answers=list[ProvisionerKeyDaemons],
)
async def get_key_daemons(organization: str) -> Response:
    """Return every key with its connected daemons, the three pseudo keys first."""
    row = await resolve_organization(context(), subject(), organization)
    return reply(await provisioner_keys.list_key_daemons(context(), subject(), row.id))


@route(
    blueprint,
    "DELETE",
    "/organizations/<organization>/provisionerkeys/<name>",
    scope="provisioner_daemon:delete",
    status=204,
    audit=Audited("organization", "write"),
)
async def delete_key(organization: str, name: str) -> Response:
    """Delete a key and disconnect its daemons."""
    row = await resolve_organization(context(), subject(), organization)
    await provisioner_keys.delete_key(context(), subject(), row.id, name)
    return no_content()


@route(
    blueprint,
    "GET",
    "/provisionerkeys/<secret>",
    scope=PROVISIONER,
    budget=PUBLIC_ROUTE,
    answers=ProvisionerKey,
)
async def get_own_key(secret: str) -> Response:  # noqa: ARG001 - the header counts; the path repeats it
    """Return the key itself, for daemons that authenticate with it."""
    header = request.headers.get("Coder-Provisioner-Daemon-Key", "")
    key = provisioner_keys.show_own_key(context(), header)
    return reply(await counted(key, lambda result: f"provisioner key {result.id}", count_request))


def _terms() -> Terms:
    """Return the query string as terms: unknown keys are refused, as in searches."""
    return Terms({key: list(values) for key, values in request.args.lists() if key != "coder_session_token"})


def _limit(terms: Terms) -> int:
    text = terms.one("limit")
    if not text:
        return _LIMIT
    fault = positive_fault(text)
    if fault:
        terms.refuse("limit", f'Query param "limit" must be a valid 32-bit positive integer: {fault}')
    return 0 if fault else int(text)


def _tags(terms: Terms) -> Mapping[str, str] | None:
    text = terms.one("tags")
    if not text:
        return None
    try:
        result: Json = json.loads(text)
    except RecursionError:
        terms.refuse("tags", 'Query param "tags" must be a valid JSON object: it is nested too deeply')
        return None
    except ValueError as error:
        terms.refuse("tags", f'Query param "tags" must be a valid JSON object: {explain_rest(text.encode()) or error}')
        return None
    if result is None:
        return None
    if not isinstance(result, dict):
        wrong = explain_type(result, "map[string]string")
    else:
        wrong = _not_text(result)
    if wrong or not isinstance(result, dict):
        terms.refuse("tags", f'Query param "tags" must be a valid JSON object: {wrong}')
        return None
    return {name: str(value) for name, value in result.items()}


def _not_text(tags: Mapping[str, object]) -> str:
    values = (value for value in tags.values() if not isinstance(value, str))
    return next((explain_type(value, "string") for value in values), "")


def _max_age(terms: Terms) -> timedelta | None:
    text = terms.one("max_age")
    if not text:
        return None
    try:
        return parse_duration(text)
    except CoderError:
        terms.refuse(
            "max_age",
            "Query param \"max_age\" must be a valid duration (e.g., '24h', '30m', '1h30m'): "
            f'time: invalid duration "{text}"',
        )
        return None


def _check(terms: Terms) -> None:
    wrong = terms.refusals()
    if wrong:
        raise Invalid("Invalid query parameters.", validations=[(item.field, item.detail) for item in wrong])
