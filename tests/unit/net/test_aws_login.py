"""Database logins by AWS IAM: the address carries the method, each connection gets a password of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from coder.base.config import Inputs
from coder.base.errors import CoderError
from coder.base.files.from_files import FromFiles
from coder.cli.server.server import _check_machine
from coder.coderd.config.reading import server_config
from coder.coderd.store.engine.backup import _without_password
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.net import aws_credentials
from coder.net.aws_login import AWS, PARAMETER, PASSWORD, IamLogin, with_login

HOST = "db.abc.eu-west-1.rds.amazonaws.com"
KEYS = {"AWS_ACCESS_KEY_ID": "akid", "AWS_SECRET_ACCESS_KEY": "skid"}


@pytest.mark.parametrize(
    ("url", "parameters"),
    [
        (f"postgres://u@{HOST}:6432/db", {"user": "u", "host": HOST, "port": "6432", "dbname": "db"}),
        (f"postgres://u:p?q@{HOST}/db", {"user": "u", "password": "p?q", "host": HOST, "dbname": "db"}),
        (f"postgres://u@{HOST}/db?sslmode=verify-full", {"sslmode": "verify-full", "user": "u", "host": HOST}),
        (f"host={HOST} user=u dbname=db", {"host": HOST, "user": "u", "dbname": "db"}),
    ],
)
def test_address_carries_the_method(url: str, parameters: dict[str, str]) -> None:
    given = parse_connection_string(with_login(url, AWS), {}).parameters
    assert given[PARAMETER] == AWS and parameters.items() <= given.items()
    assert with_login(url, PASSWORD) == url and with_login("", AWS) == ""


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"postgres://u@{HOST}/db?sslmode=disable", "sslmode=disable does not demand TLS"),
        (f"postgres://u@{HOST}/db?sslmode=prefer", "sslmode=prefer does not demand TLS"),
        (f"postgres://{HOST}/db", "one user and one host"),
        (f"postgres://u@{HOST},other/db", "one user and one host"),
        ("postgres://u@/db?host=/run/postgresql", "one user and one host"),
    ],
)
def test_unusable_address_is_refused(url: str, reason: str) -> None:
    with pytest.raises(CoderError, match=reason):
        parse_connection_string(with_login(url, AWS), {})


async def test_every_connection_gets_a_new_password(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(aws_credentials, "datetime", _Clock(lambda: moment))
    login = IamLogin({"user": "u", "host": HOST}, KEYS)
    first = login.password()
    moment += timedelta(minutes=1)
    second = login.password()
    assert first.startswith(f"{HOST}:5432/?Action=connect&DBUser=u&") and "%2Feu-west-1%2Frds-db%2F" in first
    assert "X-Amz-Date=20260101T000100Z" in second and first != second


def test_driver_demands_tls_and_asks_for_the_password() -> None:
    arguments = parse_connection_string(with_login(f"postgres://u:old@{HOST}/db", AWS), {}).arguments()
    assert isinstance(arguments["ssl"], FromFiles) and callable(arguments["password"])
    assert "server_settings" not in arguments


def test_server_refuses_to_start_without_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    variables = {"CODER_PG_AUTH": AWS, "CODER_PG_CONNECTION_URL": f"postgres://u@{HOST}/db"}
    with pytest.raises(CoderError, match="no AWS credentials were found"):
        _check_machine(server_config(Inputs(env=variables), tmp_path))


def test_missing_region_is_refused() -> None:
    with pytest.raises(CoderError, match="needs the region"):
        IamLogin({"user": "u", "host": "db.example.com"}, KEYS).password()


def test_programs_of_postgres_get_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    public, password = _without_password(with_login(f"postgres://u:o'ld@{HOST}/db", AWS))
    assert public == f"sslmode='require' user='u' host='{HOST}' dbname='db'"
    assert password.startswith(f"{HOST}:5432/?Action=connect")


class _Clock:
    """`datetime` of a module, with a moment that the test sets."""

    def __init__(self, now: object) -> None:
        self._now = now
        self.fromisoformat = datetime.fromisoformat

    def now(self, _zone: object) -> datetime:
        return self._now()  # type: ignore[no-any-return, operator]
