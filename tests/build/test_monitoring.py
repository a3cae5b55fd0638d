"""Alert rules and the Grafana dashboard in build/monitoring: every metric exists, and promtool accepts the rules."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from coder.coderd.services.telemetry import metrics
from coder.wsproxy import metrics as proxy_metrics

FOLDER = Path(__file__).resolve().parents[2] / "build/monitoring"
OTHERS = {"up"}
"""Metrics of Prometheus itself."""
_METRIC = re.compile(r"\b(?:coder|coderd|go|process|promhttp)_[a-z0-9_]+\b|\bup\b")
_SERIES_OF_HISTOGRAM = ("_bucket", "_count", "_sum")


def declared() -> dict[str, tuple[str, set[str]]]:
    """Return kind and labels of each family of server and proxy."""
    families = (*metrics._FAMILIES, *metrics._PROCESSES, *metrics._DATABASE, *proxy_metrics.FAMILIES)
    return {name: (kind, set(labels.split())) for name, kind, labels, _ in families}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def _family(series: str) -> str:
    known = declared()
    for ending in _SERIES_OF_HISTOGRAM:
        if series not in known and known.get(series.removesuffix(ending), ("",))[0] == "histogram":
            return series.removesuffix(ending)
    return series


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_metrics_of_expression_exist(name: str, expression: str) -> None:
    used = set(_METRIC.findall(re.sub(r'"[^"]*"', '""', expression)))
    assert used
    assert {_family(series) for series in used} - declared().keys() <= OTHERS


@pytest.mark.parametrize(("name", "expression"), list(expressions()))
def test_labels_of_expression_exist(name: str, expression: str) -> None:
    """Labels by which series are chosen or added up; those of the scrape itself aside."""
    used = set(_METRIC.findall(re.sub(r'"[^"]*"', '""', expression)))
    known = {"le", "instance", "job"}.union(*(declared()[_family(series)][1] for series in used - OTHERS))
    groups = re.findall(r"\bby \(([^)]*)\)", expression)
    chosen = re.findall(r"([a-z_]+)\s*(?:=~|!=|=)\s*\"", expression)
    assert {label.strip() for group in groups for label in group.split(",")} | set(chosen) <= known


def test_alerts_have_advice() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "description"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (apt-get install prometheus)")
def test_promtool_accepts_rules() -> None:
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=FOLDER, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
