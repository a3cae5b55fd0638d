"""The Helm chart as helm packages it, but with the same bytes each time: helm writes the time of packaging."""

from __future__ import annotations

import re
from pathlib import Path

from release import archive
from release.plan import ROOT, Plan, write

CHART = ROOT / "build/helm"


def build(plan: Plan) -> Path:
    """Write `coder-<version>.tgz` with the version of the release, and return its path."""
    entries = []
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if path.name == "Chart.yaml":
            data = re.sub(rb"(?m)^(version|appVersion): .*$", rb"\1: " + plan.version.encode(), data)
        entries.append(archive.entry(f"coder/{path.relative_to(CHART).as_posix()}", data))
    return write(plan.out / f"coder-{plan.version}.tgz", archive.compressed(archive.tar(entries, plan.time)))
