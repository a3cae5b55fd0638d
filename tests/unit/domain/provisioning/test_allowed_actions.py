"""Every state of a job or workspace has an action for its owner."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

from coder.domain.provisioning.allowed_actions import SILENT_AFTER, allowed_actions, is_silent, may_abandon
from coder.domain.provisioning.jobs import HUNG_AFTER, STATUSES
from coder.domain.workspaces.builds import TRANSITIONS, WORKSPACE_STATUSES, build_status, is_active

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_every_state_has_an_action() -> None:
    seen = set()
    for transition, status, silent, allows in itertools.product(TRANSITIONS, STATUSES, (False, True), (False, True)):
        seen.add(build_status(transition, status))
        ways = allowed_actions(status, silent=silent, template_allows_cancel=allows)
        works = is_active(status) and status != "pending" and not silent  # a connected daemon works on it
        bounded = works and (status == "canceling" or not allows)
        assert ways or bounded, (transition, status, silent, allows)
    assert seen == set(WORKSPACE_STATUSES)
    # A bounded job ends in silence, and a silent job always has an action.
    assert SILENT_AFTER < HUNG_AFTER
    assert all(allowed_actions(status, silent=True, template_allows_cancel=False) for status in STATUSES)
    assert is_silent(NOW - SILENT_AFTER, NOW)
    assert not is_silent(NOW, NOW)


def test_owner_abandons_what_cannot_be_deleted() -> None:
    both = (False, True)
    for transition, status, silent, served, manages in itertools.product(TRANSITIONS, STATUSES, both, both, both):
        lost = silent if status in {"running", "canceling"} else not served
        failed = (transition, status) == ("delete", "failed")
        idle = status not in {"running", "canceling"}
        assert may_abandon(status, transition, silent=silent, served=served, manages=manages) is (
            lost or failed or (manages and idle)
        ), (transition, status, silent, served, manages)
