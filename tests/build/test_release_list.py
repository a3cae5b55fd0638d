"""scripts/release-list: the list that `coder upgrade` reads, from folders that scripts/release made."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from coder.api.site.release_list import newest_release, parse_release_list
from coder.base.version import BUILD_VERSION
from coder.coderd.store.engine.migrate import known_revisions
from tests.kit.paths import ROOT
from tests.kit.programs.releases import Mirror


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/release_list.py"), str(folder)]
    return subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


def test_list_of_release_folders(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    place = mirror.add("v9.1.0")
    (place / "RELEASE_NOTES.md").write_text("# 9.1.0\n\n### Added\n- A thing.\n\n## Files\n\n- `x`\n")
    with zipfile.ZipFile(place / "coder-9.1.0-py3-none-any.whl", "w") as wheel:
        for path in (ROOT / "coder/coderd/store/migrations/versions").glob("*.py"):
            wheel.writestr(path.relative_to(ROOT).as_posix(), "")
    mirror.add("v9.0.0")
    (tmp_path / "not-a-release").mkdir()
    done = run(tmp_path)
    assert done.returncode == 0 and "2 releases, newest v9.1.0" in done.stderr
    listed = parse_release_list((tmp_path / "releases.json").read_bytes()).releases
    newest = newest_release(listed, BUILD_VERSION)
    assert newest is not None and newest.notes == "### Added\n- A thing." and newest.folder == "v9.1.0"
    assert newest.schema_revision == known_revisions()[-1]
    assert [(item.version, item.notes, item.schema_revision) for item in listed if item is not newest] == [
        ("v9.0.0", "", "")
    ]


def test_folder_without_releases(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1 and "SHA256SUMS.minisig" in done.stderr
    assert not (tmp_path / "releases.json").exists()
