"""Rules of sub-agents over all their members."""

from __future__ import annotations

from uuid import uuid4

from coder.domain.agents import sub_agents as rules
from coder.domain.agents.sub_agents import MAX_NAME, explain_name, explain_slug, stored_slug

GOOD = ["a", "A1", "my-app", "x" * MAX_NAME]
BAD = ["", "-a", "a-", "a--b", "a_b", "a b", "a\n", "ä", "a\x00", "x" * (MAX_NAME + 1)]


def test_names_and_slugs() -> None:
    assert all(explain_name(name) == "" for name in GOOD)
    assert all(explain_name(name) for name in BAD)
    assert [explain_slug(slug) == "" for slug in GOOD] == [True, False, True, True], "slugs are in lower case"
    assert all(explain_slug(slug) for slug in BAD)


def test_stored_slugs_differ_between_agents() -> None:
    first, second = stored_slug("api", "docs"), stored_slug("ui", "docs")
    assert first != second
    assert first == stored_slug("api", "docs"), "the same in every build: addresses stay"
    for slug in (first, second):
        assert slug.endswith("-docs") and len(slug) == len("docs") + 9
        assert explain_slug(slug) == ""


def test_removed_sub_agents_count_toward_limit() -> None:
    limit, apps = rules.MAX_MADE, rules.MAX_APPS_MADE
    assert rules.explain_total(0, 0, rules.MAX_APPS) == rules.explain_total(limit - 1, apps - 1, 1) == ""
    assert "restart the workspace" in rules.explain_total(limit, 0, 0)
    assert "restart the workspace" in rules.explain_total(0, apps - 1, 2)
    assert limit > rules.MAX_SUB_AGENTS and apps > rules.MAX_SUB_AGENTS * rules.MAX_APPS


def test_template_sub_agents_are_recognized() -> None:
    child = uuid4()
    assert rules.is_from_template(child, [{"subagent_id": ""}, {}, {"subagent_id": str(child)}])
    assert not rules.is_from_template(child, [{"subagent_id": ""}, {}, {"subagent_id": str(uuid4())}])
