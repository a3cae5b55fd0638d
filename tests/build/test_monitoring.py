"""Alert rules and the Grafana dashboard in build/monitoring: every metric exists, and promtool accepts the rules."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest
import yaml

from coder.cli.server.support import _DEPLOYMENT
from coder.coderd.services.telemetry import fault_metrics, metrics
from coder.wsproxy import metrics as proxy_metrics
from tests.arch.test_fault_table import TABLE
from tests.kit.paths import ROOT

FOLDER = ROOT / "build/monitoring"
ABOUT_LOAD = {"CoderProcessorSaturated", "CoderNotificationsFail"}
"""Alerts about no fault of docs/reliability.md: too much load, and a mail server of others."""
BUNDLED = {name.rpartition("/")[2] for name in _DEPLOYMENT} | {"build_logs.json", "agent.json", "connection.json"}
"""Files of the support bundle that a fault may need, without their folders."""
OTHERS = {"up"}
"""Metrics of Prometheus itself."""
_METRIC = re.compile(r"\b(?:coder|coderd|go|process|promhttp)_[a-z0-9_]+\b|\bup\b")
_SERIES_OF_HISTOGRAM = ("_bucket", "_count", "_sum")


def declared() -> dict[str, tuple[str, set[str]]]:
    """Return kind and labels of each family of server and proxy."""
    families = (
        *metrics._FAMILIES,
        *fault_metrics.FAULTS,
        *metrics._PROCESSES,
        *metrics._DATABASE,
        *proxy_metrics.FAMILIES,
    )
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


def rows_of(page: str, start: str) -> dict[str, list[str]]:
    """Return the further cells of each row of a page's first table whose heading begins so."""
    lines = iter((ROOT / page).read_text().partition(f"| {start} |")[2].splitlines()[2:])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in takewhile(lambda line: line, lines)]
    return {row[0]: row[1:] for row in rows}


SEEN = rows_of("docs/reliability.md", "fault | alerts")


def test_every_fault_has_an_alert() -> None:
    """Each row of the fault table has alerts that exist, and files of the support bundle that do."""
    known, named = {rule["alert"] for rule in rules()}, set()
    assert list(SEEN) == [fault for fault in TABLE if fault != "fault"]
    for fault, (alerts, _, files) in SEEN.items():
        of_fault = re.findall(r"`(\w+)`", alerts)
        assert of_fault and set(of_fault) <= known, fault
        of_bundle = re.findall(r"`([\w.]+)`", files)
        assert of_bundle and set(of_bundle) <= BUNDLED, (fault, set(of_bundle) - BUNDLED)
        named |= set(of_fault)
    assert known - named == ABOUT_LOAD


def test_log_lines_of_faults_exist() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "coder").rglob("*.py"))
    for fault, (_, shown, _files) in SEEN.items():
        for line in re.findall(r"`([^`]+)`", shown):
            assert f'"{line}' in sources, (fault, line)


def test_every_alert_is_tried() -> None:
    """promtool fires each of them: a rule that never fires is accepted as well."""
    tried = re.findall(r'alertname="(\w+)"', (FOLDER / "alerts.test.yaml").read_text())
    assert sorted(tried) == sorted(rule["alert"] for rule in rules())


def test_every_alert_is_documented() -> None:
    cells = rows_of("docs/guides/metrics.md", "fault | alert").values()
    documented = re.findall(r"`(\w+)`", " ".join(cell for row in cells for cell in row))
    assert sorted(documented) == sorted(rule["alert"] for rule in rules())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (apt-get install prometheus)")
def test_promtool_accepts_rules() -> None:
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=FOLDER, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
