"""Failures of the world at a start: each names what failed, why, and the next step, and none is an internal error."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from coder.base.config import Inputs
from coder.base.errors import CoderError, explain_error
from coder.cli.core.failures import defect_text
from coder.cli.server.start_checks import check_folder, check_terraform, with_stun_port
from coder.coderd import app
from coder.coderd.config.options import OPTIONS
from coder.coderd.config.reading import server_config
from coder.coderd.config.settings import ServerConfig
from coder.coderd.store.engine import postgres_programs
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.coderd.store.engine.migrate import wait_for_database
from coder.coderd.store.engine.postgres_cluster import Account, Cluster
from tests.kit.programs.command_line import Result, run_cli

OF_LIBRARIES = ("Traceback", "internal error", "sqlalchemy", "asyncpg", "[Errno", "strconv", "ValueError", "KeyError")
"""Words that only a library or a defect prints."""


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def check_plain(done: Result) -> None:
    """Check the error after the log lines, which have the exceptions' own names."""
    assert done.code == 1, done
    error = done.stderr.partition("Encountered an error")[2]
    assert error and not [word for word in OF_LIBRARIES if word in error], done.stderr


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--postgres-url mysql://foo", "mysql:// is not PostgreSQL"),
        ("--postgres-url postgres://u:p@127.0.0.1:1/x", "the PostgreSQL server at 127.0.0.1:1 cannot be used"),
        ("--postgres-url postgres://nosuchhost.invalid/x", "the PostgreSQL server at nosuchhost.invalid:5432"),
        ("--config /nonexistent.yaml", "cannot read settings from /nonexistent.yaml: No such file or directory"),
        ("--config /etc", "cannot read settings from /etc: Is a directory"),
        ("--cache-dir /proc/nope", "--cache-dir: the directory /proc/nope cannot be created"),
        ("--global-config /proc/nope", "--global-config: the directory /proc/nope cannot be created"),
        ("--terraform-path /nope/terraform", "--terraform-path: /nope/terraform is not an executable program"),
        ("--provisioner-daemons=-1", "--provisioner-daemons=-1 is negative"),
        ("--log-human /nonexistent/dir/x", "/nonexistent/dir/x"),
        ("--tls-enable --tls-cert-file /nonexistent --tls-key-file /nonexistent", "/nonexistent"),
        ("--tls-enable --tls-cert-file {file} --tls-key-file {file}", "{file}"),
        ("--http-address 256.0.0.1:80", "256.0.0.1"),
        ("--http-address 127.0.0.1:{port}", "{port}"),
        ("--derp-config-path /nonexistent", "/nonexistent"),
    ],
)
async def test_server_refuses_world(
    words: str, what: str, taken_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "wait_for_database", partial(wait_for_database, patience=1))
    file = tmp_path / "plain"
    file.write_text("no certificate\n")
    fill = {"port": str(taken_port), "file": str(file)}
    given = [word.format(**fill) for word in words.split()]
    base = ["server", "--http-address", "127.0.0.1:0", "--cache-dir", str(tmp_path / "cache")]
    done = await run_cli([*base, *given], home=tmp_path)
    check_plain(done)
    assert what.format(**fill) in done.stderr, done.stderr


async def test_provisioner_refuses_missing_terraform(tmp_path: Path) -> None:
    env = {"CODER_URL": "http://127.0.0.1:1", "CODER_SESSION_TOKEN": "x"}
    done = await run_cli(["provisionerd", "start", "--terraform-path", "/nope/terraform"], home=tmp_path, env=env)
    check_plain(done)
    assert "/nope/terraform is not an executable program" in done.stderr


def test_default_terraform_may_be_downloaded(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    check_terraform("terraform", environment, can_download=True)
    with pytest.raises(CoderError, match="downloads are off"):
        check_terraform("terraform", environment, can_download=False)
    with pytest.raises(CoderError, match="not an executable program"):
        check_terraform("terraform-1.9", environment, can_download=True)
    (tmp_path / "tofu").write_text("")
    (tmp_path / "tofu").chmod(0o755)
    check_terraform("terraform", environment, can_download=False)


def test_folder_of_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CoderError, match="cannot be created"):
        check_folder("cache-dir", tmp_path / "file")


def test_full_disk_has_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shutil.copytree` raises an error whose only argument is a list."""

    def full(source: Path, target: Path, **_: object) -> None:
        raise shutil.Error([(str(source), str(target), f"[Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}: 'x'")])

    monkeypatch.setattr(shutil, "copytree", full)
    cluster = Cluster(tmp_path, tmp_path / "data", tmp_path / "sock", Account(1, 1, "x", False))
    with pytest.raises(CoderError) as refused:
        postgres_programs._copied(Path("/usr/lib/x/bin"), cluster, "18.1")
    text = explain_error(refused.value)
    assert "No space left on device" in text and "Check the free space" in text and "Errno" not in text
    other = defect_text(shutil.Error([("a", "b", "[Errno 28] No space left on device: 'x'")]), verbose=False)
    assert "internal error" not in other and "No space left on device" in other


@pytest.mark.parametrize("url", ["mysql://foo", "http://x", "sqlite:///x.db", "redis://x:6379/0"])
def test_other_databases_are_named(url: str) -> None:
    with pytest.raises(CoderError) as refused:
        parse_connection_string(url, {})
    assert url.partition("//")[0] in str(refused.value) and "PostgreSQL" in str(refused.value)


_WRONG = {
    "bool": ("maybe",),
    "int": ("three", "-1", "99999999999999999999", ""),
    "duration": ("soon", "-5s", "10 parsecs"),
    "string-array": (",", "\x00", "a=b=c"),
    "string": ("", "http://", "[::1", "a b", "/nonexistent", "\u202e", "{", "postgres://[", "%zz"),
}


@pytest.mark.parametrize("option", [item for item in OPTIONS if item.env or item.flag], ids=lambda item: item.name)
def test_wrong_values_have_sentences(option: object, tmp_path: Path) -> None:
    """Every setting with plausible wrong values is accepted or refused with a sentence that names the setting."""
    kind, flag, env = (getattr(option, name) for name in ("kind", "flag", "env"))
    for value in _WRONG.get(kind, _WRONG["string"]):
        for inputs in (
            Inputs(env={env: value}) if env else None,
            Inputs(flags={flag: [value] if "array" in kind else value}) if flag else None,
        ):
            if inputs is None:
                continue
            try:
                server_config(inputs, tmp_path)
            except CoderError as error:
                text = explain_error(error)
                for word in OF_LIBRARIES:
                    assert word not in text, (option, value, text)
                assert "--" in text or (env and env in text), (option, value, text)


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_stun_port_zero_is_chosen_once(host: str) -> None:
    chosen = with_stun_port(ServerConfig(stun_address=f"{host}:0")).stun_address
    assert chosen.rpartition(":")[0] == host and 1024 <= int(chosen.rpartition(":")[2]) <= 65535


@pytest.mark.parametrize("address", ["", "127.0.0.1:3478", "[::1]:7", "192.0.2.1:0"])
def test_other_stun_addresses_are_kept(address: str) -> None:
    assert with_stun_port(ServerConfig(stun_address=address)).stun_address == address
