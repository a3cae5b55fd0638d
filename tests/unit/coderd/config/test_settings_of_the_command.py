"""Settings with effect before a server runs: output, log targets, arguments of the built-in provisioners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import yaml

from coder.base.config import Inputs
from coder.cli.core.parsing import parse
from coder.cli.declarations.server.server import SERVER
from coder.cli.provisioning import builtin_daemons
from coder.cli.server import server
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.config.setting import ServerOption
from coder.coderd.config.settings import SECRETS, ServerConfig
from coder.coderd.services.foundation.context import Context
from coder.provisionerd.config import DaemonConfig
from tests.unit.coderd.config.test_config import another_value

NOWHERE = Path("/nowhere")
WRITTEN = [option for option in OPTIONS if option.yaml and not option.secret]


def configured(**flags: str) -> ServerConfig:
    return server_config(Inputs(flags={name.replace("_", "-"): value for name, value in flags.items()}), NOWHERE)


def written(capsys: pytest.CaptureFixture[str], flags: Mapping[str, str]) -> ServerConfig:
    """Return what a server reads from a file with the output of `--write-config` for these flags."""
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    assert server._run(parse(SERVER, [*arguments, "--write-config"], {"HOME": "/nowhere"})) == 0
    return server_config(Inputs(file=yaml.safe_load(capsys.readouterr().out)), NOWHERE)


def differences(one: ServerConfig, other: ServerConfig) -> dict[str, tuple[Any, Any]]:
    names = {item.name for item in fields(ServerConfig)} - SECRETS - {"resolved", "data_dir"}
    return {
        name: (getattr(one, name), getattr(other, name)) for name in names if getattr(one, name) != getattr(other, name)
    }


@pytest.mark.parametrize("option", WRITTEN, ids=lambda option: option.flag)
def test_written_config_reads_back(option: ServerOption, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {option.flag: another_value(option)}
    try:
        built = server_config(Inputs(flags=flags), NOWHERE)
    except Exception:
        flags = {}  # refused, or not allowed alone
        built = server_config(Inputs(), NOWHERE)
    assert differences(built, written(capsys, flags)) == {}


def test_written_config_holds_only_given_values(capsys: pytest.CaptureFixture[str]) -> None:
    tls = {"tls-enable": "true", "tls-cert-file": "/cert", "tls-key-file": "/key"}
    assert not written(capsys, tls).redirect_to_access_url
    assert written(capsys, tls | {"tls-redirect-http-to-https": "true"}).redirect_to_access_url


def test_settings_come_from_named_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "coder.yaml"
    file.write_text("networking:\n  http:\n    httpAddress: 127.0.0.1:7\n")
    assert written(capsys, {"config": str(file)}).http_address == "127.0.0.1:7"
    assert written(capsys, {}).http_address == "127.0.0.1:3000"


async def given_to_daemons(monkeypatch: pytest.MonkeyPatch, config: ServerConfig) -> list[dict[str, Any]]:
    """Return, by daemon, its announcement and its settings."""
    built: list[dict[str, Any]] = []

    async def run(connect: Any, work: DaemonConfig, executors: Any, _shutdown: Any) -> None:
        connect()
        built[-1] |= {"work": work, "executors": executors}

    def connect(_context: Any, name: str, kinds: list[str]) -> None:
        built.append({"name": name, "kinds": kinds})

    monkeypatch.setattr(builtin_daemons, "run_daemon", run)
    monkeypatch.setattr(builtin_daemons, "connect_built_in", connect)
    stopping = trio.Event()
    stopping.set()
    process = SimpleNamespace(retiring=trio.Event())
    context = SimpleNamespace(config=config, stopping=stopping, process=process)
    await builtin_daemons.builtin_daemons(cast("Context", context))
    return built


DAEMON_SETTINGS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], Any]] = {
    "provisioner_types": ("echo", lambda item: item["kinds"], ["echo"]),
    "provisioner_force_cancel_interval": ("7s", lambda item: item["work"].force_cancel, 7.0),
    "provisioner_job_timeout": ("9s", lambda item: item["work"].job_timeout, 9.0),
    "terraform_path": ("/opt/tofu", lambda item: item["executors"]["terraform"]._config.binary, "/opt/tofu"),
}
"""Their effect inside a daemon is tested with daemons: tests/unit/provisionerd."""


async def test_built_in_provisioners_follow_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    (before,) = await given_to_daemons(monkeypatch, configured(provisioner_daemons="1"))
    for name, (value, look, expected) in DAEMON_SETTINGS.items():
        (one,) = await given_to_daemons(monkeypatch, configured(provisioner_daemons="1", **{name: value}))
        assert look(one) == expected != look(before), name
