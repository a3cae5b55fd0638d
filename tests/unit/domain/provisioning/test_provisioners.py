"""Daemons: status and compatibility."""

from datetime import UTC, datetime, timedelta

import pytest

from coder.domain.provisioning.provisioners import daemon_status, explain_incompatible

T = datetime(2026, 11, 21, tzinfo=UTC)


def test_status() -> None:
    assert daemon_status(None, busy=False, now=T) == "offline"
    assert daemon_status(T - timedelta(seconds=90), busy=True, now=T) == "offline"
    assert daemon_status(T - timedelta(seconds=89.9), busy=False, now=T) == "idle"
    assert daemon_status(T, busy=True, now=T) == "busy"


@pytest.mark.parametrize("version", ["1.0", "1.17", "1.18"])
def test_versions_served(version: str) -> None:
    assert explain_incompatible(version, "1.18") is None


@pytest.mark.parametrize("version", ["1.19", "2.0", "0.9", "", "1", "1.x", "a.b", "1.²"])
def test_versions_refused(version: str) -> None:
    assert explain_incompatible(version, "1.18")
