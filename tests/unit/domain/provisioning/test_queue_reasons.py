"""Reasons why a job is pending, and its forecast."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coder.domain.provisioning.queue import DaemonOffer, JobRequirements, TagRule, fits, order
from coder.domain.provisioning.queue_forecast import Forecast, History, NoForecast, forecast, quantile, starts_now
from coder.domain.provisioning.queue_reasons import Daemon, explain_text, explain_waiting, find_remedy, judge, tag_rule
from coder.domain.provisioning.tags import normalize_tags

ORG, ELSEWHERE, ADA = UUID(int=1), UUID(int=2), "ada"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
GPU = {"gpu": "yes"}


def job(number: int, *, minute: int = 0, tags: dict[str, str] | None = None) -> JobRequirements:
    at = NOW - timedelta(hours=1) + timedelta(minutes=minute)
    return JobRequirements(UUID(int=number), ORG, "terraform", normalize_tags(ADA, tags), 0, at)


def daemon(name: str, *, tags: dict[str, str] | None = None, organization: UUID = ORG, **rest: Any) -> Daemon:
    offer = DaemonOffer(organization, frozenset({"terraform"}), normalize_tags(ADA, tags))
    plain = Daemon(UUID(int=hash(name) & ((1 << 60) - 1)), name, offer, NOW)
    return replace(plain, **rest)


def test_nearest_miss_comes_first() -> None:
    long_ago = NOW - timedelta(days=1)
    daemons = [
        daemon("elsewhere", organization=ELSEWHERE),
        daemon("personal", tags={"scope": "user"}),
        daemon("plain"),
        daemon("plain-offline", last_seen_at=long_ago),
        daemon("wrong", tags={"gpu": "no"}),
        daemon("revoked", tags=GPU, key_revoked=True),
        daemon("gone", tags=GPU, last_seen_at=long_ago),
        daemon("busy", tags=GPU, job_id=UUID(int=9)),
        daemon("idle", tags=GPU),
    ]
    reasons = explain_waiting(job(1, tags=GPU), daemons, NOW)
    assert [(reason.daemon.name, reason.code) for reason in reasons] == [
        ("idle", "ready"),
        ("busy", "busy"),
        ("gone", "offline"),
        ("revoked", "key_revoked"),
        ("wrong", "wrong_tag"),
        ("plain", "lacks_tag"),
        ("plain-offline", "lacks_tag"),
        ("personal", "scope"),
        ("elsewhere", "other_organization"),
    ]
    texts = {reason.daemon.name: explain_text(reason) for reason in reasons}
    assert texts["gone"] == "is offline since 2026-11-20 00:00:00 UTC"
    assert texts["plain"] == "lacks tag gpu=yes"
    assert texts["wrong"] == "has gpu=no, the job requires gpu=yes"
    assert texts["busy"].endswith(str(UUID(int=9)))


def test_strict_rule_reserves_tagged_daemons() -> None:
    (reason,) = explain_waiting(job(1), [daemon("special", tags=GPU)], NOW, rule=TagRule(strict=True))
    assert (reason.code, reason.key) == ("reserved", "gpu")


def test_verdicts() -> None:
    wanted = job(1, tags=GPU)

    def verdict(*daemons: Daemon) -> str:
        reasons = explain_waiting(wanted, daemons, NOW)
        return judge(reasons, starts_now=starts_now(wanted, [wanted], daemons))

    assert verdict() == "nobody"
    assert verdict(daemon("plain")) == "nobody"
    assert verdict(daemon("b", tags=GPU, job_id=UUID(int=9))) == "queued"
    assert verdict(daemon("b", tags=GPU)) == "starts_now"
    offline = daemon("b", tags=GPU, last_seen_at=None)
    assert judge(explain_waiting(wanted, [offline], NOW), starts_now=False) == "all_offline"


def test_remedy_is_a_command() -> None:
    reasons = explain_waiting(job(1, tags={"gpu": "yes", "place": "the moon"}), [daemon("box", tags=GPU)], NOW)
    remedy = find_remedy(job(1, tags={"gpu": "yes", "place": "the moon"}), reasons)
    assert remedy.command == "coder provisioner start --tag gpu=yes --tag place='the moon'"
    assert remedy.nearest == "box lacks tag place=the moon"
    mine = find_remedy(job(1, tags={"scope": "user"}), [])
    assert mine.command == "coder provisioner start --tag scope=user"
    assert mine.notes


def history(**kinds: list[float]) -> History:
    return History({UUID(int=9): "a", UUID(int=1): "a", UUID(int=2): "a"}, kinds)


def test_missing_forecast_has_reason() -> None:
    wanted = job(1, tags=GPU)
    none = forecast(wanted, [wanted], [daemon("plain")], history(a=[1] * 9), NOW)
    assert none == NoForecast("there is no provisioner that may ever run it")
    offline = forecast(wanted, [wanted], [daemon("b", tags=GPU, last_seen_at=None)], history(a=[1] * 9), NOW)
    assert offline == NoForecast("every provisioner that may run it is offline")
    busy = forecast(wanted, [wanted], [daemon("b", tags=GPU, job_id=UUID(int=9))], history(a=[1]), NOW)
    assert isinstance(busy, NoForecast)
    assert "3 are needed" in busy.reason


def test_forecast_follows_durations() -> None:
    first, second = job(1), job(2, minute=1)
    worker = daemon("w", job_id=UUID(int=9), job_started_at=NOW - timedelta(seconds=5))
    result = forecast(second, [second, first], [worker], history(a=[10.0] * 5), NOW)
    assert result == Forecast(NOW + timedelta(seconds=15), NOW + timedelta(seconds=15), 5)
    idle = forecast(first, [first, second], [worker, daemon("x")], history(a=[10.0] * 5), NOW)
    assert idle == Forecast(NOW, NOW, 5)
    assert quantile([1.0, 2.0, 3.0], 0.25) == 1.5


RULES = (TagRule(), TagRule(strict=True), TagRule(served=frozenset({(ORG, "terraform")})))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, "yields"),
        ({"job_id": UUID(int=9)}, "yields"),
        ({"unreachable_since": NOW - timedelta(hours=1)}, "yields"),
        ({"last_seen_at": NOW - timedelta(seconds=89)}, "yields"),
        ({"last_seen_at": NOW - timedelta(seconds=90)}, "ready"),
        ({"last_seen_at": None}, "ready"),
        ({"key_revoked": True}, "ready"),
        ({"offer": DaemonOffer(ORG, frozenset(), normalize_tags(ADA))}, "ready"),
        ({"offer": DaemonOffer(ORG, frozenset({"echo"}), normalize_tags(ADA))}, "ready"),
        ({"offer": DaemonOffer(ELSEWHERE, frozenset({"terraform"}), normalize_tags(ADA))}, "ready"),
        ({"offer": DaemonOffer(ORG, frozenset({"terraform"}), normalize_tags(ADA, {"a": "b"}))}, "ready"),
    ],
)
def test_connected_untagged_daemon_is_preferred(change: dict[str, Any], code: str) -> None:
    daemons = [replace(daemon("plain"), **change), daemon("special", tags=GPU)]
    rule = tag_rule(daemons, NOW, strict=False)
    reasons = {reason.daemon.name: reason for reason in explain_waiting(job(1), daemons, NOW, rule=rule)}
    assert reasons["special"].code == code
    assert fits(job(1, tags=GPU), daemons[1].offer, rule=rule), "tagged jobs are not concerned"


def test_draining_daemon_takes_nothing() -> None:
    draining = daemon("plain", offer=DaemonOffer(ORG, frozenset(), normalize_tags(ADA)))
    (reason,) = explain_waiting(job(1), [draining], NOW)
    assert (reason.code, reason.may_take) == ("draining", False)
    assert explain_text(reason) == "is draining: it finishes its job and takes no other"


tags = st.dictionaries(st.sampled_from(["a", "b", "scope"]), st.sampled_from(["x", "user"]), max_size=3)


@settings(max_examples=200, deadline=None)
@given(wanted=tags, theirs=st.lists(tags, max_size=4), rule=st.sampled_from(RULES))
def test_reasons_follow_queue_rules(wanted: dict[str, str], theirs: list[dict[str, str]], rule: TagRule) -> None:
    result = job(1, tags=wanted)
    daemons = [daemon(f"d{number}", tags=given_) for number, given_ in enumerate(theirs)]
    reasons = explain_waiting(result, daemons, NOW, rule=rule)
    assert len(reasons) == len(daemons)
    for reason in reasons:
        assert reason.may_take == fits(result, reason.daemon.offer, rule=rule)
        assert explain_text(reason)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_earlier_jobs_take_idle_daemons(count: int) -> None:
    jobs = [job(number, minute=number) for number in range(1, 4)]
    idle = [daemon(f"d{number}") for number in range(count)]
    assert [starts_now(item, jobs, idle) for item in order(jobs)] == [number < count for number in range(3)]
