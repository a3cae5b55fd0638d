"""`q=` of the list of workspaces: from text to a filter, with names resolved to ids."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coder.api.base.refusals import Invalid
from coder.coderd.services.people.query_terms import find_group, find_organization, find_user
from coder.coderd.store.workspaces.workspace_search import WorkspaceSearch
from coder.domain.access.policy import Subject
from coder.domain.agents.agents import search_statuses
from coder.domain.foundation.search import Terms, parse_go_bool, parse_query, split_outside_quotes
from coder.domain.workspaces.builds import WORKSPACE_STATUSES

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

_BARE = "\x00bare"
# Cannot be typed: terms without a key get this one, and become owner and name.


async def read_search(ctx: Context, subject: Subject, query: str) -> WorkspaceSearch:
    """Return the filter of a query. Raises Invalid with one validation for each error."""
    terms = parse_query(query.replace("\x00", ""), _BARE)
    which = replace(
        _filter(subject, terms),
        organization_id=await find_organization(ctx, subject, terms),
        shared_with_user=await find_user(ctx, subject, terms, "shared_with_user"),
        shared_with_group=await find_group(ctx, subject, terms, "shared_with_group"),
    )
    refusals = terms.refusals()
    if refusals:
        raise Invalid("Invalid workspace search query.", validations=[(item.field, item.detail) for item in refusals])
    return which


def _filter(subject: Subject, terms: Terms) -> WorkspaceSearch:
    for term in terms.many(_BARE):
        _add_name(terms, term)
    owner = terms.one("owner")
    return WorkspaceSearch(
        ids=terms.uuids("id"),
        owner_id=subject.user_id if owner == "me" else None,
        owner_username="" if owner == "me" else owner,
        template_name=terms.one("template"),
        template_ids=terms.uuids("template_ids"),
        name=terms.pattern("name"),
        status=terms.choice("status", WORKSPACE_STATUSES),
        agent_statuses=_agent_statuses(terms),
        dormant=terms.boolean("dormant") is True,
        last_used_before=terms.time("last_used_before"),
        last_used_after=terms.time("last_used_after"),
        outdated=terms.boolean("outdated"),
        parameters=terms.patterns("param", _parameter),
        has_ai_task=terms.boolean("has-ai-task"),
        has_external_agent=terms.boolean("has_external_agent"),
        shared=terms.boolean("shared"),
    )


def _add_name(terms: Terms, term: str) -> None:
    parts = split_outside_quotes(term, "/")
    if len(parts) == 1:
        terms.add("name", parts[0])
    elif len(parts) == 2:
        terms.add("owner", parts[0])
        terms.add("name", parts[1])
    elif parts:
        terms.refuse("q", f"Query element \"{term}\" can only contain 1 '/'")


def _agent_statuses(terms: Terms) -> list[str]:
    statuses = terms.list_of("has-agent", str)
    healthy = terms.one("healthy")
    if healthy:
        is_healthy = parse_go_bool(healthy)
        if is_healthy is None:
            terms.refuse(
                "healthy",
                f'Query param "healthy" must be a valid boolean: strconv.ParseBool: parsing "{healthy}": '
                "invalid syntax",
            )
        else:
            statuses += search_statuses("true" if is_healthy else "false")
    return statuses


def _parameter(text: str) -> tuple[str, str | None]:
    """Parse `name` or `name=value`. Raises ValueError."""
    name, equals, value = text.strip().partition("=")
    if "=" in value:
        raise ValueError(f"query element \"{text}\" can only contain 1 '='")
    return name, value if equals else None
