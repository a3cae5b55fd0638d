"""`q=` and the page of every list of users: users, members of organizations and groups, candidates for access."""

from __future__ import annotations

from uuid import UUID

from coder.api.base.refusals import Invalid
from coder.coderd.http.server.declarations import Search, search
from coder.coderd.http.server.query import Page, Query
from coder.coderd.services.people.users import UserFilter
from coder.domain.foundation.search import Terms, parse_query

USER_SEARCH = search(
    "created_after created_before github_com_user_id last_seen_after last_seen_before "
    "login_type name role search service_account status"
)
USER_PAGE: dict[str, type | Search] = {"after_id": UUID, "limit": int, "offset": int, "q": USER_SEARCH}
"""Query parameters of paginated lists."""

_WHOLE = Page(None, 0, 0)
_STATUSES = ("active", "dormant", "suspended")
_LOGIN_TYPES = ("", "github", "none", "oidc", "password", "token")


def requested_page(message: str = "Invalid user search query.") -> UserFilter:
    """Return the current request's filter of a list of users. Raises Invalid, for a wrong search with the words
    `message`."""
    query = Query()
    page = query.page()
    query.check()
    return search_filter(query.text("q"), message, page)


def search_filter(text: str, message: str = "Invalid user search query.", page: Page = _WHOLE) -> UserFilter:
    """Parse the `q=` of lists of users. Raises Invalid."""
    terms = parse_query(text, "search")
    search = UserFilter(
        search=terms.pattern("search"),
        name=terms.pattern("name"),
        statuses=terms.choices("status", _STATUSES),
        roles=[role for value in terms.many("role") for role in value.split(",")],
        login_types=terms.choices("login_type", _LOGIN_TYPES),
        last_seen_before=terms.time("last_seen_before"),
        last_seen_after=terms.time("last_seen_after"),
        created_before=terms.time("created_before"),
        created_after=terms.time("created_after"),
        github_com_user_id=terms.int64("github_com_user_id") or None,
        service_account=terms.boolean("service_account"),
        after_id=page.after_id,
        limit=page.limit,
        offset=page.offset,
    )
    check_terms(terms, message)
    return search


def check_terms(terms: Terms, message: str) -> None:
    """Raise Invalid with every mistake of the query."""
    wrong = terms.refusals()
    if wrong:
        raise Invalid(message, validations=[(item.field, item.detail) for item in wrong])
