"""The recipe for systems we do not have: what it names exists, and its results are what a server offers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from coder.coderd.services.site.binaries import names

ROOT = Path(__file__).resolve().parents[2]


def test_the_recipe() -> None:
    job = yaml.safe_load((ROOT / ".ci/other-platforms.yml").read_text())["jobs"]["build"]
    made = {entry["name"] for entry in job["strategy"]["matrix"]["include"]}
    assert made <= set(names()) and {name.split("-")[1] for name in made} == {"darwin", "windows"}
    words = {word for step in job["steps"] for word in step.get("run", "").split()}
    named = {word for word in words if word.startswith(("scripts/", "build/"))}
    assert named == {"scripts/constraints.txt", "build/coder.spec"} and all((ROOT / name).is_file() for name in named)
    assert job["env"]["CODER_EDITION"] == "slim"


def test_recipe_says_it_is_untested() -> None:
    for path in (".ci/other-platforms.yml", "docs/guides/installing.md"):
        text = (ROOT / path).read_text()
        assert "NOT RUN by us" in text or "has\nbeen run on those systems" in text


def test_spec_builds_one_file_without_launcher() -> None:
    """Evaluated with PyInstaller's names standing in: which pieces are put together, on which system."""
    text = (ROOT / "build/coder.spec").read_text()
    tail = text[text.index("ONE_FILE =") :]
    for system, one_file in (("linux", False), ("darwin", True), ("win32", True)):
        made: list[tuple[str, tuple[object, ...], dict[str, object]]] = []

        class Sys:
            platform = system

        class Analysed:
            scripts, binaries, datas = "scripts", "binaries", "datas"

        def record(what: str, into: list[tuple[str, tuple[object, ...], dict[str, object]]] = made):  # type: ignore[no-untyped-def]
            return lambda *args, **given: into.append((what, args, given))

        exec(tail, {"sys": Sys, "a": Analysed, "pyz": "pyz", "EXE": record("EXE"), "COLLECT": record("COLLECT")})  # noqa: S102
        (_, pieces, settings), *rest = made
        assert [what for what, _, _ in rest] == ([] if one_file else ["COLLECT"])
        assert pieces == (("pyz", "scripts", "binaries", "datas") if one_file else ("pyz", "scripts", []))
        assert settings["exclude_binaries"] is not one_file and settings["strip"] is (system != "win32")


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_posix_only_modules_name_the_alternative(system: str) -> None:
    """It is imported where Python lacks what only POSIX has, and names the other way."""
    script = (
        "import sys\n"
        "for name in ('fcntl', 'pwd', 'grp', 'resource', 'termios'): sys.modules[name] = None\n"
        f"sys.path.insert(0, {str(ROOT / 'build')!r})\n"
        f"import build\nsys.platform, sys.argv = {system!r}, ['build.py']\nbuild.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("build: there is a launcher for Linux only; ") and "build/coder.spec" in done.stderr
