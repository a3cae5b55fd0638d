"""Causes of disconnects: every row of the table is reached, its order matters, untrusted events break nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from coder.domain.agents import flight_events
from coder.domain.agents.disconnects import CAUSES, ENDINGS, RULES, Evidence, name_cause, read_events

CLOSED = ("disconnected", {"how": "closed"})
SILENT = ("disconnected", {"how": "silent"})


def _died(**rest: Any) -> tuple[str, dict[str, Any]]:
    return ("started", {"previous": "died", "same_boot": True, "oom_kills": 0} | rest)


STORIES = [
    ("killed", "closed", [_died()]),
    ("killed", "silent", [("network_changed", {"before": "a", "after": "b"}), _died()]),
    ("killed", "lost", [_died()]),
    ("out_of_memory", "closed", [_died(oom_kills=2)]),
    ("rebooted", "silent", [_died(same_boot=False, oom_kills=2)]),
    ("stopped", "closed", [("stopped", {}), ("started", {"previous": "stopped", "same_boot": True})]),
    ("upgraded", "closed", [("upgraded", {}), ("started", {"previous": "upgraded", "same_boot": True})]),
    ("unknown", "closed", [("started", {"previous": "none"})]),
    ("slept", "silent", [("stood_still", {"seconds": 30, "machine_slept": True}), CLOSED]),
    ("slept", "silent", [("stood_still", {"seconds": 30, "machine_slept": False}), SILENT]),
    ("slept", "silent", [("stood_still", {"seconds": 30}), ("network_changed", {"before": "a", "after": "b"}), CLOSED]),
    ("network_changed", "silent", [("network_changed", {"before": "10.0.0.1", "after": "10.0.0.2"}), SILENT]),
    ("proxy_cut", "closed", [("network_changed", {"before": "a", "after": "b", "survived": True}), CLOSED]),
    ("network_lost", "silent", [("stood_still", {"seconds": 30, "survived": True}), SILENT]),
    ("network_lost", "silent", [CLOSED]),
    ("proxy_cut", "closed", [CLOSED, ("dial_failed", {"how": "http 502"})]),
    ("proxy_cut", "unnoticed", [CLOSED]),
    ("server_restarted", "stopping", [CLOSED]),
    ("server_restarted", "lost", [CLOSED, ("dial_failed", {"how": "refused"})]),
    ("network_lost", "silent", [SILENT, ("clock_jumped", {"seconds": 3600})]),
    ("unknown", "closed", [SILENT]),
    ("unknown", "silent", []),
]


@pytest.mark.parametrize(("cause", "ended", "events"), STORIES)
def test_events_name_the_cause(cause: str, ended: Any, events: Any) -> None:
    assert name_cause(read_events(ended, events)).cause == cause


def test_earlier_cut_explains_silence() -> None:
    """A proxy closes the agent's connection and keeps the server's; the agent cannot dial for a while."""
    assert name_cause(read_events("silent", [CLOSED], cut_first=True)).cause == "proxy_cut"
    assert name_cause(read_events("silent", [SILENT], cut_first=True)).cause == "network_lost"


def test_every_cause_and_rule_is_reached() -> None:
    assert {cause for cause, _, _ in STORIES} == set(CAUSES)
    deciding = set()
    for ended, flags in product(ENDINGS, product((False, True), repeat=9)):
        reported, new, other, bye, lost, boot, cut, first, gave_up = flags
        for oom, still, address in product((0, 1), (0.0, 20.0), ("", "a -> b")):
            own = (bye, lost, boot, oom, still, False, address, cut, first, gave_up)
            evidence = Evidence(ended, reported, new, other, *own)
            deciding.add(next(number for number, rule in enumerate(RULES) if rule[1](evidence)))
            assert name_cause(evidence).detail.endswith(".")
    assert deciding == set(range(len(RULES)))


def test_missing_report_names_no_agent_cause() -> None:
    for ended in ENDINGS:
        expected = "server_restarted" if ended in {"stopping", "lost"} else "unknown"
        assert name_cause(Evidence(ended)).cause == expected
    assert name_cause(Evidence("closed", goodbye=True)).cause == "stopped"


@pytest.mark.parametrize("junk", [None, "x", [], {}, True, -1, 1e300, float("nan"), "\x1b[2J" * 1000])
def test_agent_events_are_untrusted(junk: Any) -> None:
    names = ("previous", "same_boot", "oom_kills", "seconds", "machine_slept", "before", "after", "how")
    events = [(kind, dict.fromkeys(names, junk)) for kind in (*flight_events.KINDS, "unheard of")]
    verdict = name_cause(read_events("silent", events))
    assert verdict.cause in CAUSES and len(verdict.detail) < 600 and verdict.detail.isprintable()
