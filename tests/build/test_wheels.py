"""The packages of an environment for another processor: which wheels fit, and what is compiled."""

from __future__ import annotations

import platform
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.kit.programs.single_binary import recipe

sys.path.insert(0, str(recipe.ROOT / "build"))
import wheels


def test_tag_order() -> None:
    tags = wheels.tags_of("armv7l-manylinux_2_20")
    numbered = [f"manylinux_2_{minor}_armv7l" for minor in (20, 19, 18, 17)]
    assert tags == ["linux_armv7l", *numbered, "manylinux2014_armv7l"]


class Pip:
    """Stands in for pip; keeps what it was asked, in order, with the environment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, tuple[str, ...], dict[str, str] | None]] = []
        monkeypatch.setattr(wheels, "pip", self)
        monkeypatch.setattr(venv, "create", lambda folder, with_pip: None)

    def __call__(self, python: str, *arguments: str, env: dict[str, str] | None = None) -> None:
        self.calls.append((python, arguments, env))
        if arguments[0] == "wheel":
            made = Path(arguments[arguments.index("--wheel-dir") + 1])
            made.mkdir(parents=True)
            (made / "made-1.whl").touch()

    def run(self, monkeypatch: pytest.MonkeyPatch, target: Path, *names: str) -> None:
        command = ["wheels.py", "--target", str(target), "--platform", "armv7l-manylinux_2_36"]
        monkeypatch.setattr(sys, "argv", [*command, *(f"--compile={name}" for name in names)])
        assert wheels.main() == 0


def test_exactly_what_is_installed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "installed", {"msgspec": "0.22.0", "cffi": "2.1.1", "trio": "0.35.0"}.items)
    pip = Pip(monkeypatch)
    (tmp_path / "there").mkdir()
    (tmp_path / "there/left over").touch()
    pip.run(monkeypatch, tmp_path / "there", "msgspec", "cffi")
    assert [call[1][0] for call in pip.calls] == ["install", "wheel", "install"]
    (here, tools, nothing), (same, made, told), (_, last, plain) = pip.calls
    # Its tools are this machine's: chosen before Python is told of the other one, and apart from the program's.
    assert set(wheels.BUILD_WITH) <= set(tools) and nothing is None and plain is None and here == same != sys.executable
    assert made[-2:] == ("msgspec==0.22.0", "cffi==2.1.1") and "--no-build-isolation" in made
    assert told is not None and told["_PYTHON_HOST_PLATFORM"] == "linux-armv7l"
    assert told["_PYTHON_SYSCONFIGDATA_NAME"] == "_sysconfigdata__arm-linux-gnueabihf"
    assert told["CC"] == "arm-linux-gnueabihf-gcc" and told["host_alias"] == "arm-linux-gnueabihf"
    assert "SODIUM_INSTALL" not in told, "Debian's libsodium is older than PyNaCl's bindings"
    assert "trio==0.35.0" in last and not {"msgspec==0.22.0", "cffi==2.1.1"} & set(last)
    assert last[-1].endswith("made-1.whl") and not (tmp_path / "there/left over").exists()
    assert last.count("--platform") == len(wheels.tags_of("armv7l-manylinux_2_36")) and "--no-deps" in last
    assert ".".join(platform.python_version_tuple()[:2]) in last


def test_available_wheels_are_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "installed", {"trio": "0.35.0"}.items)
    pip = Pip(monkeypatch)
    pip.run(monkeypatch, tmp_path)
    assert [call[1][0] for call in pip.calls] == ["install"] and pip.calls[0][1][-1] == "trio==0.35.0"


def test_unknown_package_name_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "installed", {"trio": "0.35.0"}.items)
    pip = Pip(monkeypatch)
    with pytest.raises(SystemExit, match="not installed: mspec"):
        pip.run(monkeypatch, tmp_path, "mspec")
    assert not pip.calls


def test_build_tools_are_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        def __init__(self, name: str) -> None:
            self.metadata, self.version = {"Name": name}, "1"

    names = ["PyNaCl", "backports.tarfile", "jaraco_classes", *wheels.TOOLS]
    monkeypatch.setattr(wheels, "distributions", lambda: map(Found, names))
    assert dict(wheels.installed()) == {"pynacl": "1", "backports-tarfile": "1", "jaraco-classes": "1"}


def test_pip_failure_stops_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **given: Any) -> None:
        assert given["check"] and command[1:3] == ["-m", "pip"]
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(subprocess.CalledProcessError):
        wheels.pip("python", "install", "absent")
