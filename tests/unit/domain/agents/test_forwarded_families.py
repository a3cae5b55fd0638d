"""Known families equal the recorded ones."""

from __future__ import annotations

from coder.agent.counters import FAMILIES
from coder.domain.agents.forwarded_families import KNOWN
from tests.kit.server.server_process import ROOT

RECORDED = ROOT / "tests" / "data" / "api" / "recorded" / "metrics.tsv"
PLACE = {"agent_name", "template_name", "username", "workspace_name"}


def test_families_have_recorded_kind_and_labels() -> None:
    rows = [line.split("\t") for line in RECORDED.read_text().splitlines()[1:]]
    recorded = {
        name: (kind, tuple(sorted(set(labels.split(",")) - PLACE)))
        for name, kind, labels, seen_with in rows
        if "agent-forwarded" in seen_with or name in FAMILIES
    }
    assert recorded == dict(KNOWN) and len(KNOWN) > 80


def test_our_families_are_known() -> None:
    assert {name: KNOWN[name][0] for name in FAMILIES} == dict(FAMILIES)
