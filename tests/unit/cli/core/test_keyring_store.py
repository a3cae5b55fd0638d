"""Sessions whose token is in the system's keyring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.programs.command_line import Result, run_cli
from tests.kit.server.server_in_process import World, running_coderd

FLAGS = ("--use-keyring", "--no-open")


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.kit.programs.file_keyring.FileKeyring")
    monkeypatch.setenv("TEST_KEYRING", str(tmp_path / "ring"))
    return tmp_path / "ring"


async def coder(world: World, home: Path, *words: str, token: str = "", code: int = 0) -> Result:
    env = {"CODER_SESSION_TOKEN": token} if token else {}
    result = await run_cli(list(words), home=home, env=env)
    assert result.code == code, result.stderr
    return result


async def test_login_and_logout(tmp_path: Path, ring: Path) -> None:
    async with running_coderd(first_user=True) as world:
        await coder(world, tmp_path, "login", world.url, *FLAGS, token=world.token)
        config = tmp_path / ".config/coderv2"
        assert not (config / "session").exists()
        (stored,) = json.loads(ring.read_text()).values()
        assert (await coder(world, tmp_path, "login", "token")).stdout == f"{stored}\n"
        assert "admin" in (await coder(world, tmp_path, "whoami")).stdout
        ring.write_text("locked")
        refused = await coder(world, tmp_path, "whoami", code=1)
        assert "the system's keyring did not read the session token" in refused.stderr
        ring.write_text(json.dumps({f"coder {world.url}": stored}))
        await coder(world, tmp_path, "logout", "-y")
        assert json.loads(ring.read_text()) == {}
        assert not list(config.iterdir())
        assert "You are not logged in" in (await coder(world, tmp_path, "whoami", code=1)).stderr


async def test_login_to_file_clears_keyring(tmp_path: Path, ring: Path) -> None:
    async with running_coderd(first_user=True) as world:
        await coder(world, tmp_path, "login", world.url, *FLAGS, token=world.token)
        await coder(world, tmp_path, "login", world.url, "--no-open", token=world.token)
        assert json.loads(ring.read_text()) == {}
        assert {path.name for path in (tmp_path / ".config/coderv2").iterdir()} == {"url", "session"}
        await coder(world, tmp_path, "whoami")


async def test_no_keyring_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
    async with running_coderd(first_user=True) as world:
        result = await coder(world, tmp_path, "login", world.url, *FLAGS, token=world.token, code=1)
        assert "error: this system has no keyring to store the session token" in result.stderr
        assert not (tmp_path / ".config/coderv2/session").exists()
        assert "You are not logged in" in (await coder(world, tmp_path, "whoami", code=1)).stderr
